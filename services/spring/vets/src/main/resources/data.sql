-- As many as the most spans need, each with one specialty: every statement costs the same.
INSERT INTO vets SELECT x, 'First' || x, 'Last' || x FROM SYSTEM_RANGE(1, 98);

INSERT INTO specialties VALUES (1, 'radiology'), (2, 'surgery'), (3, 'dentistry');

INSERT INTO vet_specialties SELECT id, MOD(id, 3) + 1 FROM vets;
