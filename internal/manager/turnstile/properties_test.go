package turnstile

import (
	"flag"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A hundred checks of thirty steps, the usual numbers, seldom fill a queue.
func init() {
	for name, value := range map[string]string{"rapid.checks": "500", "rapid.steps": "200"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// machine plays random requests, answers and pauses, and remembers what the promises need.
type machine struct {
	*places
	most    int
	now     time.Time
	in      []*pass
	waiting [needs][]*pass
	// ahead counts, for each need, places given to it in a row while somebody behind could
	// have been let in.
	ahead [needs]int
}

// settle lets in all who can be and checks each of them.
func (m *machine) settle(t *rapid.T) {
	for {
		could := m.could()
		r := m.next(m.now)
		if r == nil {
			for n, can := range could {
				if can {
					t.Fatalf("a %s could be let in and is not", need(n))
				}
			}
			return
		}
		m.check(t, r, could)
		m.waiting[r.need] = m.waiting[r.need][1:]
		m.in = append(m.in, r)
	}
}

func (m *machine) could() (could [needs]bool) {
	for n := range needs {
		could[n] = len(m.waiting[n]) > 0 && m.room(n)
	}
	return could
}

// room says in the plainest words whether one more request of a need may be under way.
func (m *machine) room(n need) bool {
	if m.now.Before(m.opens[n]) {
		return false
	}
	for k := node; k <= n; k++ {
		count := 0
		for _, r := range m.in {
			if r.need >= k {
				count++
			}
		}
		if count >= m.limit[k] {
			return false
		}
	}
	return true
}

// check that it is the turn of the request.
func (m *machine) check(t *rapid.T, r *pass, could [needs]bool) {
	if !could[r.need] || m.waiting[r.need][0] != r {
		t.Fatalf("a %s is let in out of turn", r.need)
	}
	for n := node; n < r.need; n++ {
		if could[n] && m.ahead[n] < turns {
			t.Fatalf("a %s goes before a %s, which had only %d turns", r.need, n, m.ahead[n])
		}
		if could[n] {
			m.ahead[n] = 0
		}
	}
	for behind := r.need + 1; behind < needs; behind++ {
		if could[behind] {
			if m.ahead[r.need]++; m.ahead[r.need] > turns {
				t.Fatalf("a %s waits while a %s has its turn %d", behind, r.need, m.ahead[r.need])
			}
			return
		}
	}
}

func (m *machine) come(t *rapid.T) {
	r := &pass{need: need(rapid.IntRange(0, int(needs)-1).Draw(t, "need"))}
	could := m.room(r.need) && m.nobodyWaits()
	m.arrive(r, m.now)
	if could != (r.waits == nil) {
		t.Fatalf("a %s could enter at once: %v, did: %v", r.need, could, !could)
	}
	if could {
		m.in = append(m.in, r)
	} else {
		m.waiting[r.need] = append(m.waiting[r.need], r)
	}
}

func (m *machine) end(t *rapid.T) {
	if len(m.in) == 0 {
		t.Skip("nobody is in")
	}
	i := rapid.IntRange(0, len(m.in)-1).Draw(t, "who")
	o := outcome(rapid.IntRange(int(unknown), int(refused)).Draw(t, "outcome"))
	pause := time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * time.Second
	m.leave(m.in[i], o, pause, m.now)
	m.in = append(m.in[:i:i], m.in[i+1:]...)
}

func (m *machine) giveUpOne(t *rapid.T) {
	n := rapid.IntRange(0, int(needs)-1).Draw(t, "need")
	if len(m.waiting[n]) == 0 {
		t.Skip("nobody waits")
	}
	i := rapid.IntRange(0, len(m.waiting[n])-1).Draw(t, "who")
	m.giveUp(m.waiting[n][i])
	m.waiting[n] = append(m.waiting[n][:i:i], m.waiting[n][i+1:]...)
}

// bounded checks what must hold at any time.
func (m *machine) bounded(t *rapid.T) {
	count := [needs]int{}
	for _, r := range m.in {
		for k := node; k <= r.need; k++ {
			count[k]++
		}
	}
	for n, most := range []int{m.most, max(1, m.most/2), max(1, m.most/4)} {
		if count[n] > most {
			t.Fatalf("%d requests of %s and behind are under way, of %d at most", count[n], need(n), most)
		}
		if m.limit[n] < 1 || m.limit[n] > most {
			t.Fatalf("the limit of %s is %d, of %d at most", need(n), m.limit[n], most)
		}
	}
}

func TestWhateverHappensOrderIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 24).Draw(t, "places")
		m := &machine{places: newPlaces(most), most: most, now: noon}
		t.Repeat(map[string]func(*rapid.T){
			"come":    m.come,
			"end":     m.end,
			"give up": m.giveUpOne,
			"wait":    func(*rapid.T) { m.now = m.now.Add(time.Second) },
			"": func(t *rapid.T) {
				m.settle(t)
				m.bounded(t)
			},
		})
		m.drain(t)
	})
}

// drain lets everybody through: nobody waits for ever.
func (m *machine) drain(t *rapid.T) {
	m.now = m.now.Add(longestPause)
	for m.settle(t); len(m.in) > 0; m.settle(t) {
		m.leave(m.in[0], served, 0, m.now)
		m.in = m.in[1:]
	}
	if !m.nobodyWaits() {
		t.Fatal("somebody still waits, and nobody is under way")
	}
}
