package terminal_test

import (
	"regexp"
	"strconv"
	"strings"
)

// emulator emulates the parts of a terminal that a Screen uses.
type emulator struct {
	columns int
	rows    [][]rune
	x, y    int
	nowrap  bool
	hidden  bool
	writes  int
}

func newEmulator(columns int) *emulator { return &emulator{columns: columns, rows: [][]rune{{}}} }

var sequence = regexp.MustCompile(`^\x1b\[([?0-9;]*)([A-Za-z])`)

// Write processes the output of a program.
func (e *emulator) Write(data []byte) (int, error) {
	e.writes++
	text := string(data)
	for text != "" {
		if found := sequence.FindStringSubmatch(text); found != nil {
			e.obey(found[1], found[2])
			text = text[len(found[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		e.put(r)
	}
	return len(data), nil
}

func (e *emulator) obey(arguments, command string) {
	switch command {
	case "A":
		n, _ := strconv.Atoi(arguments)
		e.y = max(0, e.y-n)
	case "K":
		e.clear()
	case "J":
		e.clear()
		e.rows = e.rows[:e.y+1]
	case "h", "l":
		switch arguments {
		case "?7":
			e.nowrap = command == "l"
		case "?25":
			e.hidden = command == "l"
		}
	}
}

// clear clears the row from the cursor on. The cursor is never beyond the last column: the next character wraps, or
// overwrites the last column.
func (e *emulator) clear() {
	e.rows[e.y] = e.rows[e.y][:min(e.x, e.columns-1, len(e.rows[e.y]))]
}

func (e *emulator) put(r rune) {
	switch r {
	case '\n':
		e.x = 0
		e.down()
		return
	case '\r':
		e.x = 0
		return
	}
	if e.x == e.columns {
		if e.nowrap {
			e.x--
		} else {
			e.x = 0
			e.down()
		}
	}
	for len(e.rows[e.y]) <= e.x {
		e.rows[e.y] = append(e.rows[e.y], ' ')
	}
	e.rows[e.y][e.x] = r
	e.x++
}

func (e *emulator) down() {
	if e.y++; e.y == len(e.rows) {
		e.rows = append(e.rows, nil)
	}
}

// narrow makes the terminal narrower, as most do: long lines wrap.
func (e *emulator) narrow(columns int) {
	var rows [][]rune
	for i, row := range e.rows {
		if i == e.y {
			e.y = len(rows)
		}
		for len(row) > columns {
			rows = append(rows, row[:columns])
			row = row[columns:]
		}
		rows = append(rows, row)
	}
	e.rows, e.columns = rows, columns
}

func (e *emulator) text() string {
	var lines []string
	for _, row := range e.rows {
		lines = append(lines, string(row))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
