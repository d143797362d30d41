"""What stands below the properties: begin with `markdown`."""
