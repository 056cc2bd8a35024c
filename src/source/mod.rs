//! where bytes come from: file, stdin, compressed.
