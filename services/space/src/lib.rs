//! Who sees whom: the spatial index and areas of interest.
