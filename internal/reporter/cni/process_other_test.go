//go:build !linux

package cni_test

import "testing"

func onScratchHost(m *testing.M) int { return m.Run() }

func runCanary(string) int { return 1 }

func dies(*testing.T, string) {}

func kill(*testing.T, string) {}
