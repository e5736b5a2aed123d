/* Loops over flat arrays for which numpy needs many passes, in C99.

   Each function has a twin in Python with the same results; tests/runtime/test_kernels.py compares
   them.  They allocate nothing, and write only to arrays that are named as results or as scratch.

   Letters: n rows, T values in all; row i is values[offsets[i] … offsets[i+1]-1]. */

#include <stdint.h>
#include <string.h>

#define FEW 16          /* values, for each byte to sort by, up to which insertion beats counting */
#define LANES 16        /* min-hashes whose minima stay in registers */
#define AT_ONCE 512     /* tokens whose hashes stay in the first cache */
#define MOST_DIGITS 20  /* of 2^64-1 */

/* On an x86 with AVX2 the loader of glibc takes the version of a function that uses it. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

static uint64_t mix(uint64_t x) /* SplitMix64, as `hashing.mix` */
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Write a parity bitmap of 64 bits and the sum of mixed values, for each row. */
WIDE void sketch_rows(const uint64_t *values, const int64_t *offsets, int64_t n, uint64_t golden,
                      uint64_t *maps, uint64_t *sums)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t map = 0, sum = 0;
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
            map ^= (uint64_t)1 << (values[k] * golden >> 58);
            sum += mix(values[k]);
        }
        maps[i] = map;
        sums[i] = sum;
    }
}

/* Write a parity bitmap of 2^log bits, for each row; maps (n, 2^(log-6)): zeros. */
void parity_maps(const uint64_t *values, const int64_t *offsets, int64_t n, uint64_t golden, int64_t log,
                 uint64_t *maps)
{
    for (int64_t i = 0; i < n; i++, maps += 1 << (log - 6))
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
            uint64_t place = values[k] * golden >> (64 - log);
            maps[place >> 6] ^= (uint64_t)1 << (place & 63);
        }
}

static void by_insertion(uint64_t *row, int64_t size)
{
    for (int64_t i = 1; i < size; i++) {
        uint64_t value = row[i];
        int64_t j = i;
        for (; j > 0 && row[j - 1] > value; j--)
            row[j] = row[j - 1];
        row[j] = value;
    }
}

/* Sort by the bytes that are not the same in all values, the lowest first. */
static void by_counting(uint64_t *row, int64_t size, uint64_t *scratch, uint64_t differ)
{
    uint64_t *from = row, *to = scratch;
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t places[256] = {0}, before = 0;
        if (!(differ >> shift & 255))
            continue;
        for (int64_t i = 0; i < size; i++)
            places[from[i] >> shift & 255]++;
        for (int byte = 0; byte < 256; byte++) {
            int64_t count = places[byte];
            places[byte] = before;
            before += count;
        }
        for (int64_t i = 0; i < size; i++)
            to[places[from[i] >> shift & 255]++] = from[i];
        uint64_t *sorted = to;
        to = from, from = sorted;
    }
    if (from != row)
        memcpy(row, from, (size_t)size * sizeof *row);
}

/* Sort a row in place, without repeats; return its new size. */
static int64_t sort_distinct(uint64_t *row, int64_t size, uint64_t *scratch)
{
    uint64_t any = 0, all = UINT64_MAX;
    int64_t descents = 0, kept = 0;
    for (int64_t i = 0; i < size; i++) {
        any |= row[i];
        all &= row[i];
        descents += i > 0 && row[i - 1] > row[i];
    }
    int64_t bytes = 0;
    for (uint64_t differ = any ^ all; differ; differ >>= 8)
        bytes += (differ & 255) > 0;
    if (descents && size <= FEW * bytes)
        by_insertion(row, size);
    else if (descents)
        by_counting(row, size, scratch, any ^ all);
    for (int64_t i = 0; i < size; i++) {
        row[kept] = row[i];
        kept += i + 1 == size || row[i] != row[i + 1];
    }
    return kept;
}

/* Sort each of n rows of sizes[i] values, end to end, without repeats; close the gaps, and write the
   new sizes.  scratch: as many values as the largest row. */
void sort_rows(uint64_t *values, int64_t *sizes, int64_t n, uint64_t *scratch)
{
    uint64_t *row = values, *to = values;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = sizes[i];
        sizes[i] = sort_distinct(row, size, scratch);
        memmove(to, row, (size_t)sizes[i] * sizeof *row);
        row += size;
        to += sizes[i];
    }
}

static int is_blank(uint8_t byte) { return byte == ' ' || (byte >= 9 && byte <= 13 && byte != '\n'); }
static int is_space(uint8_t byte) { return byte == ' ' || (byte >= 9 && byte <= 13); }

static int above_64_bits(const uint8_t *digits, const uint8_t *end)
{
    uint64_t value = 0;
    while (digits < end && *digits == '0')
        digits++;
    if (end - digits > MOST_DIGITS)
        return 1;
    for (; digits < end; digits++) {
        uint64_t digit = *digits - '0';
        if (value > (UINT64_MAX - digit) / 10)
            return 1;
        value = 10 * value + digit;
    }
    return 0;
}

/* Read the digits at p, eight at most, of the eight bytes there; return how many there are.

   Without a branch for each one: the length of a number cannot be foretold. */
static int up_to_eight_digits(const uint8_t *p, uint64_t *value)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word, others;
    memcpy(&word, p, sizeof word);
    word ^= 0x3030303030303030u;
    others = (word | (word + 0x7676767676767676u)) & 0x8080808080808080u; /* bytes above 9 */
    int digits = others ? __builtin_ctzll(others) >> 3 : 8;
    if (digits == 0)
        return 0;
    word <<= 64 - 8 * digits; /* zeros in front: then pairs, pairs of pairs, and halves add up */
    word = (word * (10 << 8 | 1)) >> 8 & 0x00FF00FF00FF00FFu;
    word = (word * (100 << 16 | 1)) >> 16 & 0x0000FFFF0000FFFFu;
    *value = word * (10000ull << 32 | 1) >> 32;
    return digits;
#else
    (void)p, (void)value;
    return 0;
#endif
}

/* Parse lines `ID SHINGLE…` to rows; the text ends with LF, and CR stands only before LF.

   values: results, as many as there are blanks and LF; scratch: NULL, or so many to sort each row,
   without repeats; lines (5 for each LF): results for each line that is not blank: its number, where
   its id begins and ends, where its last token ends, and the size of its row, 0 where it has no
   shingles or a token is not one.  Return how many such lines. */
int64_t parse_shingles(
    const uint8_t *text, int64_t length, uint64_t *values, uint64_t *scratch, int64_t *lines)
{
    const uint8_t *p = text, *end = text + length;
    int64_t found = 0, total = 0;
    for (int64_t number = 0; p < end; number++, p++) {
        while (is_blank(*p))
            p++;
        if (*p == '\n')
            continue;
        int64_t *line = lines + 5 * found++, size = 0, bad = 0;
        uint64_t *row = values + total;
        line[0] = number;
        line[1] = p - text;
        while (!is_space(*p))
            p++;
        line[2] = line[3] = p - text;
        for (;;) {
            uint64_t value = 0;
            uint8_t digit;
            while (is_blank(*p))
                p++;
            if (*p == '\n')
                break;
            const uint8_t *token = p;
            p += 8 <= end - p ? up_to_eight_digits(p, &value) : 0;
            for (; (digit = (uint8_t)(*p - '0')) < 10; p++)
                value = 10 * value + digit;
            bad |= !is_space(*p) || (p - token >= MOST_DIGITS && above_64_bits(token, p));
            while (!is_space(*p))
                p++;
            row[size++] = value;
            line[3] = p - text;
        }
        line[4] = bad ? 0 : scratch ? sort_distinct(row, size, scratch) : size;
        total += line[4];
    }
    return found;
}

/* Lower `minima` (count, a multiple of LANES) to those of the products of n tokens and the factors. */
WIDE static void lower(
    const uint32_t *tokens, int64_t n, const uint32_t *factors, int64_t count, uint32_t *minima)
{
    for (int64_t k = 0; k < count; k += LANES) {
        uint32_t least[LANES], factor[LANES];
        memcpy(least, minima + k, sizeof least);
        memcpy(factor, factors + k, sizeof factor);
        for (int64_t j = 0; j < n; j++)
            for (int i = 0; i < LANES; i++) {
                uint32_t hashed = tokens[j] * factor[i];
                least[i] = hashed < least[i] ? hashed : least[i];
            }
        memcpy(minima + k, least, sizeof least);
    }
}

/* Hash the min-hashes of n sets, in B bands of some rows, to words (n, B).

   seed: of the tokens; factors (count): odd, B bands of `rows` each, padded to a multiple of LANES;
   bands (B): the numbers of the bands; minima (count): scratch. */
void band_words(
    const uint64_t *values, const int64_t *offsets, int64_t n, uint64_t seed,
    const uint32_t *factors, int64_t count, const uint64_t *bands, int64_t B, int64_t rows,
    uint32_t *minima, uint64_t *words)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < count; k++)
            minima[k] = UINT32_MAX;
        for (int64_t start = offsets[i]; start < offsets[i + 1]; start += AT_ONCE) {
            uint32_t tokens[AT_ONCE];
            int64_t some = offsets[i + 1] - start < AT_ONCE ? offsets[i + 1] - start : AT_ONCE;
            for (int64_t j = 0; j < some; j++)
                tokens[j] = (uint32_t)(mix(values[start + j] ^ seed) >> 32) | 1;
            lower(tokens, some, factors, count, minima);
        }
        for (int64_t band = 0; band < B; band++) {
            uint64_t digest = bands[band];
            for (int64_t row = 0; row < rows; row++)
                digest = digest * 0x9E3779B97F4A7C15u + minima[band * rows + row];
            words[i * B + band] = mix(digest);
        }
    }
}

/* Copy n rows, of sizes[i] values of `width` bytes from values[starts[i]] on, one behind the other. */
void take_rows(
    const char *values, const int64_t *starts, const int64_t *sizes, int64_t n, int64_t width,
    char *taken)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(taken, values + starts[i] * width, (size_t)(sizes[i] * width));
        taken += sizes[i] * width;
    }
}

/* Write a word for each key keys[rows[i] · width]: its lower bits, above places[i] in `bits` bits.
   Leave out most words whose key no other one has, and return how many are left.

   Of keys with the same highest bits, all but the first find the bit of these bits set.  seen
   (2^(log-6), 2): zeros; words (n): results. */
int64_t words_of_shared_keys(
    const uint64_t *keys, int64_t width, const int64_t *rows, const int64_t *places, int64_t n,
    int64_t bits, int64_t log, uint64_t *seen, uint64_t *words)
{
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t word = keys[rows[i] * width] << bits | (uint64_t)places[i], slot = word >> (64 - log);
        uint64_t bit = (uint64_t)1 << (slot & 63), *once = seen + 2 * (slot >> 6);
        words[i] = word;
        once[1] |= once[0] & bit;
        once[0] |= bit;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t word = words[i], slot = word >> (64 - log);
        words[left] = word;
        left += seen[2 * (slot >> 6) + 1] >> (slot & 63) & 1;
    }
    return left;
}

/* Count the common values of the rows left[p] and right[p], ascending and distinct, of P pairs. */
void shared_sizes(
    const uint64_t *values, const int64_t *offsets, const int64_t *left, const int64_t *right,
    int64_t P, int64_t *sizes)
{
    for (int64_t p = 0; p < P; p++) {
        const uint64_t *a = values + offsets[left[p]], *a_end = values + offsets[left[p] + 1];
        const uint64_t *b = values + offsets[right[p]], *b_end = values + offsets[right[p] + 1];
        int64_t common = 0;
        while (a < a_end && b < b_end) {
            uint64_t x = *a, y = *b;
            common += x == y;
            a += x <= y;
            b += y <= x;
        }
        sizes[p] = common;
    }
}

/* Add up, in order, the lower halves of the hashes in each part first[i] … last[i]-1 of row i.

   parts (n): into how many a hash cuts the values of a row; sums: the results, row by row. */
void part_sums(
    const uint64_t *values, const int64_t *offsets, int64_t n, uint64_t seed, const int64_t *parts,
    const int64_t *first, const int64_t *last, double *sums)
{
    for (int64_t i = 0; i < n; i++) {
        memset(sums, 0, (size_t)(last[i] - first[i]) * sizeof *sums);
        for (int64_t j = offsets[i]; j < offsets[i + 1]; j++) {
            uint64_t hash = mix(values[j] ^ seed);
            int64_t part = (int64_t)((hash >> 32) * (uint64_t)parts[i] >> 32);
            if (part >= first[i] && part < last[i])
                sums[part - first[i]] += (double)(uint32_t)hash;
        }
        sums += last[i] - first[i];
    }
}

/* Return the first row b … end-1 of y that differs from p in at most `most` bits, or else `end`. */
static inline int64_t next_close(
    const uint64_t *p, const uint64_t *y, int64_t W, int64_t b, int64_t end, int64_t most)
{
    for (; b < end; b++) {
        const uint64_t *q = y + b * W; /* two words suffice for nearly all unrelated vectors */
        int64_t apart = __builtin_popcountll(p[0] ^ q[0]) + (W > 1 ? __builtin_popcountll(p[1] ^ q[1]) : 0);
        for (int64_t w = 2; w < W && apart <= most; w++)
            apart += __builtin_popcountll(p[w] ^ q[w]);
        if (apart <= most)
            break;
    }
    return b;
}

/* Find bit vectors, rows a of x and b of y with W words each, that differ in at most `most` bits.

   ranges (count, 4): rows first … last-1 of x, each to be compared with rows first … last-1 of y, or
   if `ascending` only with those above a.  left, right (room): results.  at (3): the range, a and b
   from which to go on, at first zeros; at[0] is `count` at the end.  Return how many were found. */
WIDE int64_t close_pairs(
    const uint64_t *x, const uint64_t *y, int64_t W, const int64_t *ranges, int64_t count, int64_t most,
    int64_t ascending, int64_t *at, int64_t *left, int64_t *right, int64_t room)
{
    int64_t found = 0, a = at[1], b = at[2];
    for (const int64_t *range = ranges + 4 * at[0]; at[0] < count; range += 4, at[0]++, a = 0) {
        int64_t end = range[3];
        for (a = a < range[0] ? range[0] : a; a < range[1]; a++, b = 0) {
            const uint64_t *p = x + a * W;
            b = b < range[2] ? range[2] : b;
            b = ascending && b <= a ? a + 1 : b;
            for (; (b = W == 1 ? next_close(p, y, 1, b, end, most) : next_close(p, y, W, b, end, most)) < end; b++) {
                if (found == room) {
                    at[1] = a, at[2] = b;
                    return found;
                }
                left[found] = a;
                right[found++] = b;
            }
        }
    }
    return found;
}

/* The minimum overlap of two sets of x and y values: a share num/den of the smaller one, or what a
   resemblance of num/den needs. */
static int64_t needed(int64_t num, int64_t den, int64_t of_smaller, int64_t x, int64_t y)
{
    int64_t part = num * (of_smaller ? x < y ? x : y : x + y), whole = of_smaller ? den : num + den;
    return (part + whole - 1) / whole;
}

/* Count the common values of two rows; return any number below `need` as soon as it is sure to be. */
static int64_t common_if(const uint32_t *a, int64_t x, const uint32_t *b, int64_t y, int64_t need)
{
    int64_t i = 0, j = 0, common = 0;
    while (i < x && j < y && common + (x - i < y - j ? x - i : y - j) >= need) {
        uint32_t p = a[i], q = b[j];
        common += p == q;
        i += p <= q;
        j += q <= p;
        for (int64_t step = 8; p < q && i + step < x && a[i + step] < q; step *= 2)
            i += step; /* far ahead in the longer row */
    }
    return common;
}

/* Find the pairs of n sets, in order of size, whose overlap is `needed` or more (PPJoin, with bitmaps).

   tokens: the rows, 0 … D-1, the rarest first; probing, indexing (n): how many first tokens of a set
   are looked up, and indexed; first (n): the first set that is large enough for a pair; maps (n, 4):
   parity bitmaps; low, high (D): where the postings of a token begin, both moved; postings (set,
   place, size): scratch; shared (n): zeros; touched (n): scratch.  at: the set from which to go on, n
   at the end; counts (3): candidates with a common token, after the positional filter, after the bitmaps; added to.
   pairs (room, 3): results, left < right and their overlap; room ≥ n.  Return how many were found. */
WIDE int64_t prefix_pairs(
    const uint32_t *tokens, const int64_t *offsets, int64_t n, const int64_t *probing,
    const int64_t *indexing, const int64_t *first, const uint64_t *maps, int64_t num, int64_t den,
    int64_t of_smaller, int64_t *low, int64_t *high, uint32_t *postings, int32_t *shared,
    uint32_t *touched, int64_t *at, int64_t *counts, int64_t *pairs, int64_t room)
{
    int64_t found = 0, y = *at;
    for (; y < n && room - found >= y; y++) {
        const uint32_t *row = tokens + offsets[y];
        int64_t size = offsets[y + 1] - offsets[y], candidates = 0;
        for (int64_t j = 0; j < probing[y]; j++) {
            int64_t at_token = low[row[j]], end = high[row[j]], last = 0, need = 0;
            while (at_token < end && postings[3 * at_token] < first[y])
                at_token++;
            low[row[j]] = at_token;
            for (; at_token < end; at_token++) {
                uint32_t x = postings[3 * at_token];
                int64_t place = postings[3 * at_token + 1], other = postings[3 * at_token + 2];
                int32_t so_far = shared[x];
                if (so_far < 0)
                    continue;
                if (so_far == 0)
                    touched[candidates++] = x;
                need = other == last ? need : needed(num, den, of_smaller, other, size);
                last = other;
                int64_t rest = size - j < other - place ? size - j : other - place;
                shared[x] = so_far + rest >= need ? so_far + 1 : -1;
            }
        }
        counts[0] += candidates;
        for (int64_t c = 0; c < candidates; c++) {
            int64_t x = touched[c], apart = 0, other = offsets[x + 1] - offsets[x];
            int64_t possible = shared[x] > 0, need = needed(num, den, of_smaller, other, size);
            shared[x] = 0;
            if (!possible)
                continue;
            counts[1]++;
            for (int64_t w = 0; w < 4; w++)
                apart += __builtin_popcountll(maps[4 * x + w] ^ maps[4 * y + w]);
            if ((other + size - apart) / 2 < need)
                continue;
            counts[2]++;
            int64_t common = common_if(row, size, tokens + offsets[x], other, need);
            if (common >= need) {
                pairs[3 * found] = x, pairs[3 * found + 1] = y, pairs[3 * found + 2] = common;
                found++;
            }
        }
        for (int64_t j = 0; j < indexing[y]; j++) {
            uint32_t *posting = postings + 3 * high[row[j]]++;
            posting[0] = (uint32_t)y, posting[1] = (uint32_t)j, posting[2] = (uint32_t)size;
        }
    }
    *at = y;
    return found;
}

/* Hash each word of lines `to be or ⏎`, which have a blank after each word, and the run of `width`
   words that begins there: 0 if its line ends before, and never else.  power: factor^width.  starts,
   words, runs: results, with room for each blank.  Return the number of words. */
int64_t hash_runs(const uint8_t *lines, int64_t size, int64_t width, uint64_t base, uint64_t factor,
                  uint64_t power, int64_t *starts, uint64_t *words, uint64_t *runs)
{
    int64_t n = 0, of_line = 0, start = 0;
    uint64_t word = 0, run = 0;
    for (int64_t at = 0; at < size; at++) {
        if (lines[at] == '\n') {
            of_line = 0, run = 0, start = at + 1;
        } else if (lines[at] != ' ') {
            word = word * base + lines[at] + 1;
        } else {
            starts[n] = start, start = at + 1;
            words[n] = mix(word), word = 0;
            runs[n] = 0;
            run = run * factor + words[n];
            if (++of_line > width)
                run -= power * words[n - width];
            if (of_line >= width) {
                uint64_t mixed = mix(run);
                runs[n - width + 1] = mixed ? mixed : 1;
            }
            n++;
        }
    }
    return n;
}

/* Note runs (n; 0: none) in a filter of 2^log slots of two bits: seen, and seen again.  Several
   processes may do so at once. */
void note_runs(const uint64_t *runs, int64_t n, int64_t log, uint8_t *filter)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t slot = runs[i] >> (64 - log);
        uint8_t seen = (uint8_t)(1 << 2 * (slot & 3)), *four = filter + (slot >> 2);
#ifdef __GNUC__
        if (i + 16 < n)
            __builtin_prefetch(filter + (runs[i + 16] >> (66 - log)), 1);
#endif
        if (!runs[i])
            continue;
#ifdef __GNUC__
        if (__atomic_fetch_or(four, seen, __ATOMIC_RELAXED) & seen)
            __atomic_fetch_or(four, (uint8_t)(seen << 1), __ATOMIC_RELAXED);
#else
        *four |= (uint8_t)(*four & seen ? seen << 1 : seen);
#endif
    }
}
