package nodestatus_test

import "testing"

// What a PATCH costs on a connection that is open, and on a new one: both sides of it are in
// this process.
func BenchmarkTouch(b *testing.B) {
	s := newAPIServer(b, answer(`{"metadata": {"uid": "u"}}`))
	b.Run("kept", func(b *testing.B) {
		client := s.client(b)
		for b.Loop() {
			if _, err := client.Report(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.client(b).Report(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			s.CloseClientConnections()
		}
	})
}
