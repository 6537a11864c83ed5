//! What the table keeps, and in how many bytes.
