package nodestatus_test

import "testing"

// The cost of a PATCH on an open connection and on a new one: client and server are in
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
