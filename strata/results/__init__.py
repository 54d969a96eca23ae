"""Results of measured cells: checks of records, tables of values, decisions, and the forecast."""
