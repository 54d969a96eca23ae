"""Results of measured cells: the check of records, tables of values, decisions, and the forecast."""
