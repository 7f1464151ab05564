"""From what a person has to a restored picture, and back: arguments, tasks, borders, the run itself."""
