"""Analysis of records: what was used, what it cost. Pure: records in, figures out."""
