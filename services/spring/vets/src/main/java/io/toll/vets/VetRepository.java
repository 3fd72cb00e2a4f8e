package io.toll.vets;

import java.util.List;
import org.springframework.data.repository.Repository;

/** Reads vets. */
interface VetRepository extends Repository<Vet, Integer> {
    /** Vets are numbered from 1, so these are {@code last} vets; one statement even when there are none. */
    List<Vet> findByIdLessThanEqualOrderById(int last);
}
