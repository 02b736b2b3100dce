"""Defines what families state their aspects with: errors, searches, probe vectors and plans; it imports no family."""
