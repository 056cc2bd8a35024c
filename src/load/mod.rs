//! plan, pack, place, seal: the verbs in one readable place; the report.
