"""Tables, pages, progress and JSON in `report`, pictures in `plots`."""
