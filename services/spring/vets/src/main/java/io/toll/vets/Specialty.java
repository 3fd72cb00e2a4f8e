package io.toll.vets;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** What a vet knows best. */
@Entity
@Table(name = "specialties")
class Specialty {
    @Id
    int id;

    String name;
}
