"""The alarm clock: APScheduler wakes the sweep, and the ledger's deadlines say what is due."""
