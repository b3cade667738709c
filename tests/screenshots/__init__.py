"""The pictures in the README: ``make screenshots`` makes them anew."""
