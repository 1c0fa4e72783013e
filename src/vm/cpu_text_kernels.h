/*
 * cpu_text_kernels.h: TextMatch's and TextPart's loops, part of cpu_kernels_impl.h.
 *
 * The images of a vector's rows lie side by side, so what a pattern looks for first is looked for in all of them at
 * once, 64 bytes at a time, and only rows that it is found in are looked at by themselves. Up to 64 bytes
 * behind a value may be read (VARIABLE_SLACK).
 */

/* Bits of the 64 bytes from p that are c. */
inline uint64_t
bytes_equal(const unsigned char *p, unsigned char c)
{
#if defined(GPUVM_AVX512)
	return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(c)));
#elif defined(GPUVM_AVX2)
	const __m256i x = _mm256_set1_epi8(static_cast<char>(c));
	const __m256i lo = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)), x);
	const __m256i hi = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p + 32)), x);

	return static_cast<uint32_t>(_mm256_movemask_epi8(lo)) | uint64_t(static_cast<uint32_t>(_mm256_movemask_epi8(hi))) << 32;
#else
	uint64_t	bits = 0;

	for (int i = 0; i < 64; i++)
		bits |= uint64_t(p[i] == c) << i;
	return bits;
#endif
}

/* Are the n bytes at `at`, behind which more may be read? `bytes` ends where it ends. */
inline bool
bytes_same(const unsigned char *at, const unsigned char *bytes, uint32_t n)
{
	uint64_t	x, y;

	if (n >= 8)
	{
		/* most differ here */
		memcpy(&x, at, 8);
		memcpy(&y, bytes, 8);
		return x == y && (n == 8 || memcmp(at + 8, bytes + 8, n - 8) == 0);
	}
	for (uint32_t i = 0; i < n; i++)
		if (at[i] != bytes[i])
			return false;
	return true;
}

/* The first place in [from, last] where the bytes are, or nullptr; i and j: which two of them are looked at first. */
inline const unsigned char *
find_bytes(const unsigned char *from, const unsigned char *last, const unsigned char *bytes, uint32_t n, uint32_t i, uint32_t j)
{
	const unsigned char a = bytes[i], b = bytes[j];

	for (; from <= last; from += 64)
	{
		uint64_t	bits = bytes_equal(from + i, a);

		if (bits == 0)
			continue;
		bits &= bytes_equal(from + j, b);
		for (; bits != 0; bits &= bits - 1)
		{
			const unsigned char *at = from + __builtin_ctzll(bits);

			if (at > last)
				return nullptr;
			if (bytes_same(at, bytes, n))
				return at;
		}
	}
	return nullptr;
}

/* Of TextFind's form. */
struct FastFind
{
	bool operator()(const unsigned char *t, uint32_t len, const unsigned char *bytes, uint32_t n, uint32_t *at) const
	{
		if (n > len - *at)
			return false;

		const unsigned char *found = find_bytes(t + *at, t + len - n, bytes, n, 0, n - 1);

		*at = static_cast<uint32_t>(found - t);
		return found != nullptr;
	}
};

inline bool
image_matches(const TextPattern *pattern, const TextImages &images, uint64_t place)
{
	TextValue	value;

	return place < images.nbytes && text_value(images.bytes + place, images.nbytes - place, pattern->attlen, &value)
		&& text_matches(pattern, value.bytes, value.len, FastFind{});
}

/* Lanes one by one. */
template <typename Code>
void
match_lanes(const TextSearch &search, const TextImages &images, const Code *codes, const uint16_t *lanes, uint32_t n, uint64_t *out)
{
	for (uint32_t k = 0; k < n; k++)
		if (image_matches(search.pattern, images, codes ? codes[lanes[k]] : 0))
			out[lanes[k] / 64] |= uint64_t(1) << lanes[k] % 64;
}

/* All images from the first lane's to the last one's. */
template <typename Code>
void
match_range(const TextSearch &search, const TextImages &images, const Code *codes, const uint16_t *lanes, uint32_t n, uint64_t *out)
{
	const TextPattern *pattern = search.pattern;
	const TextPiece &piece = pattern->pieces()[pattern->search];
	const unsigned char *bytes = pattern->bytes() + piece.first;
	uint64_t	at = codes[lanes[0]], end = codes[lanes[n - 1]];
	TextValue	value;
	uint32_t	k = 0;

	if (end >= images.nbytes || !text_value(images.bytes + end, images.nbytes - end, pattern->attlen, &value))
		return;
	end = static_cast<uint64_t>(value.bytes + value.len - images.bytes);
	while (at + piece.len <= end)
	{
		const unsigned char *found = find_bytes(images.bytes + at, images.bytes + end - piece.len, bytes, piece.len, search.rare[0], search.rare[1]);

		if (found == nullptr)
			return;

		/* whose it is */
		const uint64_t place = static_cast<uint64_t>(found - images.bytes);

		while (k + 1 < n && codes[lanes[k + 1]] <= place)
			k++;

		const uint64_t image = codes[lanes[k]];

		if (image >= images.nbytes || !text_value(images.bytes + image, images.nbytes - image, pattern->attlen, &value))
			return;
		if (found < value.bytes)
		{
			/* in its header */
			at = place + 1;
			continue;
		}
		if (found + piece.len <= value.bytes + value.len
			&& (search.contains || text_matches(pattern, value.bytes, value.len, FastFind{})))
			out[lanes[k] / 64] |= uint64_t(1) << lanes[k] % 64;
		if (++k == n)
			return;
		at = std::max(place + 1, static_cast<uint64_t>(codes[lanes[k]]));
	}
}

template <typename Code>
void
match_codes(const TextSearch &search, const TextImages &images, const void *codes, const uint16_t *lanes, uint32_t n, uint64_t *out)
{
	if (search.by_range && n >= TEXT_RANGE_LANES)
		match_range(search, images, static_cast<const Code *>(codes), lanes, n, out);
	else
		match_lanes(search, images, static_cast<const Code *>(codes), lanes, n, out);
}

void
text_match(const TextSearch &search, const TextImages &images, int width, const void *codes, const uint16_t *lanes, uint32_t n,
		   uint64_t *out)
{
	memset(out, 0, CPU_WORDS * 8);
	if (n == 0)
		return;
	switch (width)
	{
		case 0: match_lanes(search, images, static_cast<const uint8_t *>(nullptr), lanes, n, out); break;
		case 1: match_codes<uint8_t>(search, images, codes, lanes, n, out); break;
		case 2: match_codes<uint16_t>(search, images, codes, lanes, n, out); break;
		default: match_codes<uint32_t>(search, images, codes, lanes, n, out); break;
	}
}

template <typename Code>
uint32_t
part_lanes(const TextPart &part, const TextImages &images, const Code *codes, const uint16_t *lanes, uint32_t n, int64_t *out)
{
	uint32_t	errors = 0;

	for (uint32_t k = 0; k < n; k++)
	{
		const uint64_t place = codes ? codes[lanes[k]] : 0;
		TextValue	value;

		out[lanes[k]] = place < images.nbytes && text_value(images.bytes + place, images.nbytes - place, -1, &value)
			? text_part(part, value.bytes, value.len, &errors) : 0;
	}
	return errors;
}

uint32_t
text_parts(const TextPart &part, const TextImages &images, int width, const void *codes, const uint16_t *lanes, uint32_t n, int64_t *out)
{
	switch (width)
	{
		case 0: return part_lanes(part, images, static_cast<const uint8_t *>(nullptr), lanes, n, out);
		case 1: return part_lanes(part, images, static_cast<const uint8_t *>(codes), lanes, n, out);
		case 2: return part_lanes(part, images, static_cast<const uint16_t *>(codes), lanes, n, out);
		default: return part_lanes(part, images, static_cast<const uint32_t *>(codes), lanes, n, out);
	}
}
