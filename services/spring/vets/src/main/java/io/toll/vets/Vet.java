package io.toll.vets;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.JoinTable;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.List;

/** A vet, with specialties that are read when they are first looked at: the N of N+1 statements. */
@Entity
@Table(name = "vets")
class Vet {
    @Id
    int id;

    String firstName;
    String lastName;

    @ManyToMany
    @JoinTable(
            name = "vet_specialties",
            joinColumns = @JoinColumn(name = "vet_id"),
            inverseJoinColumns = @JoinColumn(name = "specialty_id"))
    @OrderBy("name")
    List<Specialty> specialties;
}
