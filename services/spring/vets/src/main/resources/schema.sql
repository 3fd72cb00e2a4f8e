CREATE TABLE vets (id INT PRIMARY KEY, first_name VARCHAR NOT NULL, last_name VARCHAR NOT NULL);

CREATE TABLE specialties (id INT PRIMARY KEY, name VARCHAR NOT NULL);

CREATE TABLE vet_specialties (
    vet_id INT NOT NULL REFERENCES vets,
    specialty_id INT NOT NULL REFERENCES specialties,
    PRIMARY KEY (vet_id, specialty_id)
);
