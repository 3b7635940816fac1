package outbound

import (
	"net/netip"
	"testing"
)

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		addr string
		want kind
	}{
		{"8.8.8.8", public}, {"1.1.1.1", public}, {"172.15.255.255", public}, {"172.32.0.0", public},
		{"100.63.255.255", public}, {"100.128.0.0", public}, {"192.167.255.255", public}, {"198.17.255.255", public},
		{"198.20.0.0", public}, {"223.255.255.255", public}, {"9.255.255.255", public}, {"11.0.0.0", public},
		{"128.0.0.0", public}, {"169.253.255.255", public}, {"169.255.0.0", public},
		{"2606:4700::1111", public}, {"2a00:1450::1", public}, {"2001:4860::8888", public}, {"2003::1", public},

		{"127.0.0.1", private}, {"127.255.255.255", private}, {"0.0.0.0", private}, {"0.1.2.3", private},
		{"10.0.0.0", private}, {"10.255.255.255", private}, {"172.16.0.0", private}, {"172.31.255.255", private},
		{"192.168.0.1", private}, {"100.64.0.0", private}, {"100.127.255.255", private},
		{"192.0.0.1", private}, {"192.0.2.1", private}, {"198.51.100.1", private}, {"203.0.113.1", private},
		{"192.88.99.1", private}, {"198.18.0.0", private}, {"198.19.255.255", private},
		{"224.0.0.1", private}, {"239.255.255.255", private}, {"240.0.0.1", private}, {"255.255.255.255", private},
		{"::", private}, {"::1", private}, {"fc00::1", private}, {"fd12:3456::1", private}, {"ff02::1", private},
		{"fec0::1", private}, {"100::1", private}, {"2001:db8::1", private}, {"3fff::1", private}, {"5f00::1", private},
		{"2001:2::1", private}, {"2001:10::1", private}, {"4000::1", private},

		// IPv4 inside IPv6: not public even when what is inside is.
		{"::ffff:8.8.8.8", private}, {"::ffff:127.0.0.1", private}, {"::ffff:7f00:1", private}, {"::ffff:10.0.0.1", private},
		{"::8.8.8.8", private}, {"::127.0.0.1", private},
		{"64:ff9b::8.8.8.8", private}, {"64:ff9b::10.0.0.1", private}, {"64:ff9b:1::8.8.8.8", private},
		{"2002:808:808::1", private}, {"2002:a00:1::1", private}, {"2002:7f00:1::", private},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", private},

		{"169.254.169.254", never}, {"169.254.0.1", never}, {"169.254.170.2", never}, {"100.100.100.200", never},
		{"168.63.129.16", never}, {"fe80::1", never}, {"fe80::1%eth0", never}, {"febf::1", never},
		{"fd00:ec2::254", never}, {"fd00:ec2::23", never}, {"fd20:ce::254", never},
		{"::ffff:169.254.169.254", never}, {"::169.254.169.254", never}, {"64:ff9b::a9fe:a9fe", never},
		{"64:ff9b:1::a9fe:a9fe", never}, {"2002:a9fe:a9fe::1", never},
		{"2001:0:4136:e378:8000:63bf:5601:5601", never}, // 169.254.169.254 inverted
	} {
		if got, name := classify(netip.MustParseAddr(test.addr)); got != test.want {
			t.Errorf("%s is %d (%s), want %d", test.addr, got, name, test.want)
		}
	}
	if got, _ := classify(netip.Addr{}); got != never {
		t.Error("no address at all may be dialled")
	}
}
