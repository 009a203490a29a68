package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// Colours are pairs, light and dark; those of the page of the dashboard, where a test computes
// their contrast. The first of the series is ours, the second the floor.
var (
	groundColour = [2]string{"#ffffff", "#161b22"}
	inkColour    = [2]string{"#1a2330", "#e4e9f0"}
	softColour   = [2]string{"#566272", "#98a5b5"}
	lineColour   = [2]string{"#e2e6eb", "#272f3a"}
	alarmColour  = [2]string{"#b3261e", "#ff9087"}
	seriesColour = [][2]string{{"#2456c7", "#8fb4ff"}, {"#566272", "#98a5b5"}, {"#a94a06", "#f6a653"}, {"#0c6b62", "#5cc8b9"}, {"#7a3aa8", "#cda2f2"}}
)

// canvas is an SVG picture in the making. Its colours are those of light or dark, as the
// reader has it.
type canvas struct {
	width, height float64
	body          bytes.Buffer
}

// text anchors.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

func (c *canvas) text(x, y, size float64, anchor, class, text string) {
	fmt.Fprintf(&c.body, "  <text x=%q y=%q font-size=%q text-anchor=%q class=%q>%s</text>\n", px(x), px(y), px(size), anchor, class, escaped(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.body, "  <line x1=%q y1=%q x2=%q y2=%q class=%q/>\n", px(x1), px(y1), px(x2), px(y2), class)
}

func (c *canvas) rect(x, y, width, height float64, class string) {
	fmt.Fprintf(&c.body, "  <rect x=%q y=%q width=%q height=%q rx=\"2\" class=%q/>\n", px(x), px(y), px(width), px(height), class)
}

// path draws through points, given as x, y, x, y and so on.
func (c *canvas) path(class string, closed bool, points ...float64) {
	var d strings.Builder
	for i := 0; i+1 < len(points); i += 2 {
		command := " L"
		if i == 0 {
			command = "M"
		}
		d.WriteString(command + px(points[i]) + " " + px(points[i+1]))
	}
	if closed {
		d.WriteString(" Z")
	}
	fmt.Fprintf(&c.body, "  <path d=%q class=%q/>\n", d.String(), class)
}

// svg is the picture; title and description are what is read out where it cannot be seen.
func (c *canvas) svg(title, description string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=%q height=%q role=\"img\" aria-labelledby=\"title description\"",
		px(c.width), px(c.height), px(c.width), px(c.height))
	b.WriteString(" font-family=\"-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Helvetica, Arial, sans-serif\">\n")
	fmt.Fprintf(&b, "  <title id=\"title\">%s</title>\n  <desc id=\"description\">%s</desc>\n", escaped(title), escaped(description))
	fmt.Fprintf(&b, "  <style>\n%s    @media (prefers-color-scheme: dark) {\n%s    }\n  </style>\n", styles(0), styles(1))
	fmt.Fprintf(&b, "  <rect width=%q height=%q rx=\"10\" class=\"ground\"/>\n", px(c.width), px(c.height))
	b.Write(c.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// styles are the classes in light (0) or dark (1).
func styles(scheme int) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "      "+format+"\n", args...) }
	say(".ground { fill: %s }", groundColour[scheme])
	say(".ink { fill: %s }", inkColour[scheme])
	say(".soft { fill: %s }", softColour[scheme])
	say(".over { fill: %s }", alarmColour[scheme])
	say(".rule { stroke: %s; stroke-width: 1 }", lineColour[scheme])
	say(".axis { stroke: %s; stroke-width: 1 }", softColour[scheme])
	say(".budget { stroke: %s; stroke-width: 1.5; stroke-dasharray: 4 3 }", alarmColour[scheme])
	say(".cut { fill: none; stroke: %s; stroke-width: 2.5 }", groundColour[scheme])
	for i, colour := range seriesColour {
		say(".fill%d { fill: %s; stroke: %s; stroke-width: 1.5 }", i, colour[scheme], groundColour[scheme])
		say(".text%d { fill: %s; stroke: %s; stroke-width: 4; stroke-linejoin: round; paint-order: stroke }", i, colour[scheme], groundColour[scheme])
		say(".line%d { fill: none; stroke: %s; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round }", i, colour[scheme])
	}
	say(".bold { font-weight: 650 }")
	return b.String()
}

// px is a coordinate, to a tenth.
func px(value float64) string {
	text := strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes all
	return b.String()
}

// widthOf is about how wide a text is.
func widthOf(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" ,.:;'|ijlft", r):
			width += 0.29
		case strings.ContainsRune("mwMW×…", r):
			width += 0.85
		case r >= '0' && r <= '9':
			width += 0.56
		default:
			width += 0.58
		}
	}
	return width * size
}

// fitting cuts a text that is wider than the room for it.
func fitting(text string, size, room float64) string {
	if widthOf(text, size) <= room {
		return text
	}
	runes := []rune(text)
	for len(runes) > 1 && widthOf(string(runes)+"…", size) > room {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// styled is which of the series' colours a subject has.
func styled(index int) int { return index % len(seriesColour) }
