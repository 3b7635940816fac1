package imagedata

import "encoding/binary"

// checkWebP checks the header and the lengths of the chunks: the standard library cannot decode a WebP.
func checkWebP(data []byte) error {
	size := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size > int64(len(data)) {
		return errBroken
	}
	shown := false
	for rest := data[12:max(size, 12)]; len(rest) > 0; {
		if len(rest) < 8 {
			return errBroken
		}
		kind, length := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		if length > int64(len(rest)-8) {
			return errBroken
		}
		body := rest[8 : 8+length]
		var width, height int64
		switch {
		case kind == "VP8 " && length >= 10 && body[3] == 0x9d && body[4] == 0x01 && body[5] == 0x2a:
			width, height = int64(binary.LittleEndian.Uint16(body[6:])&0x3fff), int64(binary.LittleEndian.Uint16(body[8:])&0x3fff)
			shown = true
		case kind == "VP8L" && length >= 5 && body[0] == 0x2f:
			bits := int64(binary.LittleEndian.Uint32(body[1:]))
			width, height = bits&0x3fff+1, bits>>14&0x3fff+1
			shown = true
		case kind == "VP8X" && length >= 10:
			width, height = little24(body[4:])+1, little24(body[7:])+1
		case kind == "ANMF" && length >= 16:
			width, height = little24(body[6:])+1, little24(body[9:])+1
			shown = true
		case kind == "VP8 ", kind == "VP8L", kind == "VP8X", kind == "ANMF":
			return errBroken
		default:
			width, height = 1, 1 // metadata
		}
		if err := bounded(width, height); err != nil {
			return err
		}
		rest = rest[min(8+length+length%2, int64(len(rest))):]
	}
	if !shown {
		return errBroken
	}
	return nil
}

func little24(b []byte) int64 { return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 }
