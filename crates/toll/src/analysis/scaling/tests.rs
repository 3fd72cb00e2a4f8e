//! Costs by pods and rate of runs whose truth is known.
