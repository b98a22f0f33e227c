package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// counters are everything that is counted, at one moment.
type counters struct { //nolint:recvcheck // it decodes itself and is copied everywhere else
	// machine is the processor time of the whole machine, own that of this process.
	machine, own   float64
	at             time.Time
	cpu, serverCPU float64
	units          int64 // times that a unit was looked at
	renders        int64
	applied        int64
	requests       map[string]int64
	rss, peak      float64
	serverRSS      float64
	sent           int64 // sum of requests
}

var (
	// memberRequest are the engine's requests, which it counts by what they are.
	memberRequest = regexp.MustCompile(`^rutter_cluster_requests_total\{verb="(.*)"\}$`)
	// ownRequest are the requests about Rutter's own objects: Applications, sets, Secrets.
	ownRequest = regexp.MustCompile(`^rest_client_requests_total\{.*method="([A-Z]+)".*\}$`)
	verbs      = map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
)

// count reads the controller's metrics and what the kernel knows of the two processes.
func (b *bench) count(ctx context.Context) (counters, error) {
	c := counters{requests: map[string]int64{}}
	data, err := b.child.get(ctx, "/metrics")
	if err != nil {
		return c, err
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, ok := cutLast(line); ok {
			c.take(name, value)
		}
	}
	return c, c.read(b.child.pid, b.server.PID)
}

// read takes what the kernel knows: of the process that sends, of the API
// server, of this process and of the whole machine.
func (c *counters) read(sender, server int) (err error) {
	c.at = time.Now()
	if c.cpu, c.rss, c.peak, err = usage(sender); err != nil {
		return err
	}
	if c.serverCPU, c.serverRSS, _, err = usage(server); err != nil {
		return err
	}
	if c.own, _, _, err = usage(os.Getpid()); err != nil {
		return err
	}
	c.machine, err = busy()
	return err
}

func cutLast(line string) (name, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || line[0] == '#' {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

func (c *counters) take(name, value string) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return // not a plain number: none of ours
	}
	n := int64(f)
	switch name {
	case "rutter_units_processed_total":
		c.units = n
	case "rutter_renders_total":
		c.renders = n
	case "rutter_objects_applied_total":
		c.applied = n
	default:
		verb := ""
		if m := memberRequest.FindStringSubmatch(name); m != nil {
			verb = m[1]
		} else if m := ownRequest.FindStringSubmatch(name); m != nil {
			verb = verbs[m[1]]
		}
		if verb != "" {
			c.requests[verb] += n
			c.sent += n
		}
	}
}

// since is what was counted between o and c; memory is that of c.
func (c counters) since(o counters) counters {
	d := c
	d.cpu, d.serverCPU = c.cpu-o.cpu, c.serverCPU-o.serverCPU
	d.machine, d.own = c.machine-o.machine, c.own-o.own
	d.units, d.renders, d.applied = c.units-o.units, c.renders-o.renders, c.applied-o.applied
	d.requests = map[string]int64{}
	for verb, n := range c.requests {
		if n > o.requests[verb] {
			d.requests[verb] = n - o.requests[verb]
		}
	}
	return d
}

// others is the processor time that went to none of the three processes. What
// was measured beside it is slower than on a quiet machine.
func (c counters) others() float64 { return max(0, c.machine-c.own-c.cpu-c.serverCPU) }

// busy reads the processor time in seconds that the machine has not been idle.
func busy() (float64, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the use of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	sum := 0.0
	for i, field := range strings.Fields(line) {
		if i == 4 || i == 5 || i > 8 { // idle, waiting for a disk, and what is in the others already
			continue
		}
		if n, err := strconv.ParseFloat(field, 64); err == nil {
			sum += n
		}
	}
	return sum / ticks, nil
}

// ticks are the clock ticks in a second in which Linux counts processor time.
const ticks = 100

// usage reads a process's processor time in seconds, and its resident memory
// now and at its most, in MB.
func usage(pid int) (cpu, rss, peak float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the use of process %d: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may hold anything
	if fields := strings.Fields(rest); len(fields) > 12 {
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		cpu = (user + system) / ticks
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the use of process %d: %w", pid, err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		key, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch key {
		case "VmRSS":
			rss = kb / 1024
		case "VmHWM":
			peak = kb / 1024
		}
	}
	return cpu, rss, peak, nil
}

// running is a process's processor time to the nanosecond: the sum over its
// threads, without those that have ended, of which a Go program has hardly any.
func running(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, errors.Join(err, os.ErrNotExist))
	}
	var sum int64
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // it has ended
		}
		first, _, _ := strings.Cut(string(data), " ")
		if ns, err := strconv.ParseInt(first, 10, 64); err == nil {
			sum += ns
		}
	}
	return time.Duration(sum), nil
}

// meanAndSpread are the mean of some values and their standard deviation.
func meanAndSpread(values []float64) (mean, spread float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += (v - mean) * (v - mean) / float64(max(1, len(values)-1))
	}
	return mean, math.Sqrt(spread)
}
