//! Dense linear algebra: the one place that calls faer.
