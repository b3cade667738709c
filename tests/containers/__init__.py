"""The sandbox beside a shop: in containers, under several names, and over https."""
