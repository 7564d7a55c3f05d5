"""What `zoo.prove` does: the plain loop, the probes and the checks of a memory's promises."""
