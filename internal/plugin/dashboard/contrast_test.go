package dashboard_test

import (
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

// colours are those of the page by name, light and dark.
func colours(t *testing.T) map[string][2]string {
	t.Helper()
	css, err := fs.ReadFile(dashboard.Static, "static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(css), -1) {
		found[m[1]] = [2]string{m[2], m[3]}
	}
	return found
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(value) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func TestTextsHaveEnoughContrast(t *testing.T) {
	all := colours(t)
	check := func(front, back string, least float64) {
		for i, theme := range []string{"light", "dark"} {
			f, b := all[front][i], all[back][i]
			if f == "" || b == "" {
				t.Fatalf("no colour %s or %s", front, back)
			}
			if got := contrast(t, f, b); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", theme, front, back, got, least)
			}
		}
	}
	for _, text := range []string{"ink", "soft", "held", "released", "accent", "alarm"} {
		for _, ground := range []string{"card", "ground", "raised"} {
			check(text, ground, 4.5)
		}
	}
	check("card", "alarm", 4.5)
	for _, shape := range []string{"held-fill", "released-fill", "idle-line"} {
		check(shape, "card", 2.4) // what a tile means is in its shape and its name as well
	}
}
