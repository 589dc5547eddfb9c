"""What the service keeps: the database, its tables, the artifacts, the lock of the data folder."""
