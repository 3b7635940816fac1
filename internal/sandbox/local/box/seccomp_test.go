package box

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs the filter as the kernel would.
func judge(t *testing.T, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[atCall:], call)
	binary.LittleEndian.PutUint32(data[atArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[atArgs+8*i:], a)
	}
	p := program()
	var value uint32
	for at := 0; at < len(p); at++ {
		in := p[at]
		jumpIf := func(yes bool) {
			if yes {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			value = binary.LittleEndian.Uint32(data[in.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jumpIf(value == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jumpIf(value >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jumpIf(value&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("unknown instruction %x", in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestFilter(t *testing.T) {
	listed := map[uint32]uint32{unix.SYS_SOCKET: nofam, unix.SYS_SOCKETPAIR: nofam, unix.SYS_FALLOCATE: nosup} // of family 0, in mode 0
	for _, n := range denied {
		listed[n] = perm
	}
	for _, n := range absent {
		listed[n] = nosys
	}
	for n := range uint32(600) {
		want, ok := listed[n]
		if !ok {
			want = allow
		}
		if got := judge(t, auditArch, n); got != want {
			t.Errorf("call %d: %x, wanted %x", n, got, want)
		}
		if got := judge(t, unix.AUDIT_ARCH_I386, n); got != kill {
			t.Errorf("call %d of another architecture: %x", n, got)
		}
	}
	const garbage = 1 << 40
	for name, c := range map[string]struct {
		want uint32
		call uint32
		args []uint64
	}{
		"unix":           {allow, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}},
		"internet":       {allow, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM}},
		"routes":         {allow, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 0, unix.NETLINK_ROUTE}},
		"sockets":        {allow, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 0, unix.NETLINK_SOCK_DIAG}},
		"audit":          {nofam, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 0, unix.NETLINK_AUDIT}},
		"packets":        {nofam, unix.SYS_SOCKET, []uint64{unix.AF_PACKET}},
		"hidden packets": {nofam, unix.SYS_SOCKET, []uint64{garbage | unix.AF_PACKET}},
		"pair":           {allow, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}},
		"odd pair":       {nofam, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC}},
		"hidden pair":    {nofam, unix.SYS_SOCKETPAIR, []uint64{garbage | unix.AF_TIPC}},
		"own limit":      {allow, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7fff_0000_1000}},
		"asked limit":    {allow, unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0, 0x7fff_0000_1000}},
		"other's limit":  {perm, unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7fff_0000_1000}},
		"high limit":     {perm, unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7fff_0000_0000}},
		"thread":         {allow, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}},
		"namespace":      {perm, unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET}},
		"window size":    {allow, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}},
		"typing":         {perm, unix.SYS_IOCTL, []uint64{0, garbage | unix.TIOCSTI}},
		"space":          {nosup, unix.SYS_FALLOCATE, []uint64{3, unix.FALLOC_FL_KEEP_SIZE, 0, 1 << 30}},
		"zeros":          {nosup, unix.SYS_FALLOCATE, []uint64{3, unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE}},
		"hidden space":   {nosup, unix.SYS_FALLOCATE, []uint64{3, garbage}},
		"hole":           {allow, unix.SYS_FALLOCATE, []uint64{3, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE}},
		"old hole":       {allow, unix.SYS_IOCTL, []uint64{3, 0x4030582b}}, // FS_IOC_UNRESVSP64
		"clone of file":  {allow, unix.SYS_IOCTL, []uint64{3, unix.FICLONE}},
		"which":          {allow, unix.SYS_PERSONALITY, []uint64{0xffffffff}},
		"debugger":       {allow, unix.SYS_PERSONALITY, []uint64{0x0040000}},
		"odd":            {perm, unix.SYS_PERSONALITY, []uint64{0x0400000}},
	} {
		if got := judge(t, auditArch, c.call, c.args...); got != c.want {
			t.Errorf("%s: %x, wanted %x", name, got, c.want)
		}
	}
	for _, request := range reserving {
		if got := judge(t, auditArch, unix.SYS_IOCTL, 3, garbage|uint64(request)); got != nosup {
			t.Errorf("request %x: %x", request, got)
		}
	}
}
