"""The service: REST for programs, pages for people, both behind the hub's sign-in."""
