//! the running or privately started server, files, staging, journal, register, recover.
