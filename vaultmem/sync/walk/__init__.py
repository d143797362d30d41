"""The only walker: which files there are, which are left out, whose memory a folder is."""
