//! Sorted replicas.
