package io.toll.vets;

import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Turns a request into as many statements as it asks for. */
@RestController
class VetsController {
    private final Clinic clinic;

    VetsController(Clinic clinic) {
        this.clinic = clinic;
    }

    @GetMapping("/vets")
    List<VetReply> vets(@RequestParam(defaultValue = "9") int spans) {
        Spans wanted = new Spans(spans);
        return wanted.askTheDatabase() ? clinic.vets(wanted.vets()) : List.of();
    }

    @ExceptionHandler
    ProblemDetail refuse(IllegalArgumentException why) {
        return ProblemDetail.forStatusAndDetail(HttpStatus.BAD_REQUEST, why.getMessage());
    }
}
