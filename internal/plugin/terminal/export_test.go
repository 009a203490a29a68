package terminal

// Resize makes the screen think that the terminal has this size.
func (s *Screen) Resize(columns, rows int) {
	s.size = func() (int, int) { return columns, rows }
}
