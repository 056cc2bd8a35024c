//! index keys, runs, merge, memory budget.
