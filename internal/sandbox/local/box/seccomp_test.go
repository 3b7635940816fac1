package box

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs the filter as the kernel would.
func judge(t *testing.T, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	return judgeBy(t, program(), arch, call, args...)
}

func judgeBy(t *testing.T, p []unix.SockFilter, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[atCall:], call)
	binary.LittleEndian.PutUint32(data[atArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[atArgs+8*i:], a)
	}
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

func TestKeepFolder(t *testing.T) {
	t.Parallel()
	const at, garbage = 0xffffff9c, uint64(0x10_0000_0000)
	for _, c := range []struct {
		call uint32
		args []uint64
		want uint32
	}{
		{unix.SYS_FCHMOD, []uint64{3, 0o4755}, perm}, {unix.SYS_FCHMOD, []uint64{3, 0o2755 | garbage}, perm}, {unix.SYS_FCHMOD, []uint64{3, 0o1777}, allow},
		{unix.SYS_FCHMODAT, []uint64{at, 0, 0o6755}, perm}, {unix.SYS_FCHMODAT, []uint64{at, 0o4000, 0o755}, allow},
		{unix.SYS_FCHMODAT2, []uint64{at, 0, 0o4000}, perm}, {unix.SYS_FCHMODAT2, []uint64{at, 0, 0o644, 0o4000}, allow},
		{unix.SYS_MKNODAT, []uint64{at, 0, unix.S_IFREG | 0o4755}, perm}, {unix.SYS_MKNODAT, []uint64{at, 0, unix.S_IFIFO | 0o600}, allow},
		{unix.SYS_OPENAT, []uint64{at, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, perm}, {unix.SYS_OPENAT, []uint64{at, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}, perm},
		{unix.SYS_OPENAT, []uint64{at, 0, unix.O_CREAT, 0o755}, allow}, {unix.SYS_OPENAT, []uint64{at, 0, unix.O_RDONLY | unix.O_DIRECTORY, 0o7777}, allow},
		{unix.SYS_OPENAT2, nil, nosys}, {unix.SYS_READ, []uint64{0o4000, 0o4000, 0o4000}, allow},
	} {
		if got := judgeBy(t, withoutSetID(), auditArch, c.call, c.args...); got != c.want {
			t.Errorf("call %d with %#o: %#x, want %#x", c.call, c.args, got, c.want)
		}
	}
	for _, m := range modesHere {
		args := make([]uint64, 4)
		args[m.arg] = 0o4755
		if got := judgeBy(t, withoutSetID(), auditArch, m.call, args...); got != perm {
			t.Errorf("call %d: %#x", m.call, got)
		}
	}
	if got := judgeBy(t, withoutSetID(), 1, unix.SYS_READ); got != kill {
		t.Errorf("another architecture: %#x", got)
	}
}
