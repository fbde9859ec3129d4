"""What the roles share as processes of their own: how one is told its crawl and its servers, waits, ends, and says how it is."""
