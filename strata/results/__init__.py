"""What was measured, before anything is made of it: whose record is good, and whose log its parser takes."""
