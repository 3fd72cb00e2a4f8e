package io.toll.vets;

import java.util.List;

/** A vet as the answer has it. */
record VetReply(int id, String firstName, String lastName, List<SpecialtyReply> specialties) {
    record SpecialtyReply(int id, String name) {}

    static VetReply of(Vet vet) {
        List<SpecialtyReply> specialties = vet.specialties.stream()
                .map(specialty -> new SpecialtyReply(specialty.id, specialty.name))
                .toList();
        return new VetReply(vet.id, vet.firstName, vet.lastName, specialties);
    }
}
