package terminal

// Resize sets the size that the screen assumes.
func (s *Screen) Resize(columns, rows int) {
	s.size = func() (int, int) { return columns, rows }
}
