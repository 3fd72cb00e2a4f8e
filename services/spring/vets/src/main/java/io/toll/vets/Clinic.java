package io.toll.vets;

import java.util.List;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** Reads vets with their specialties, in one transaction. */
@Service
class Clinic {
    private final VetRepository vets;

    Clinic(VetRepository vets) {
        this.vets = vets;
    }

    @Transactional(readOnly = true)
    public List<VetReply> vets(int number) {
        return vets.findByIdLessThanEqualOrderById(number).stream().map(VetReply::of).toList();
    }
}
