/* What one thread of C takes for the pairs of a file of shingle lines: the limit to compare with.

       cc -O3 -o limits bench/limits.c
       ./limits minhash FILE 9 10      pairs that share one of 15 bands of 7 min-hashes
       ./limits exact FILE 9 10        all pairs at or above 9/10, by PPJoin with bitmaps

   It has the loops of the package and nothing around them: no check of its input, no memory limit, no
   collision of ids.  Prints A TAB B TAB SIMILARITY, unsorted, on standard output. */

#include "../neardup/runtime/kernels.c"
#include <stdio.h>
#include <stdlib.h>

enum { BANDS = 15, ROWS = 7, FACTORS = 112 }; /* 105, padded to a multiple of LANES */

#define ABOVE 0xFFFFFFFF00000000u /* the half of a word to sort by; a number is below it */

static int64_t n, num, den;
static uint8_t *text;
static uint64_t *values;
static int64_t *lines, *offsets;

static void *array(int64_t count, size_t width)
{
    void *made = calloc((size_t)count + 1, width);
    if (!made)
        exit(1);
    return made;
}

static void read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        exit(1);
    int64_t length = ftell(file), blanks = 0, ends = 0, total = 0;
    rewind(file);
    text = array(length + 16, 1);
    if (fread(text, 1, (size_t)length, file) != (size_t)length)
        exit(1);
    fclose(file);
    for (int64_t i = 0; i < length; i++) {
        blanks += text[i] <= ' ';
        ends += text[i] == '\n';
    }
    values = array(blanks, sizeof *values);
    uint64_t *scratch = array(blanks, sizeof *scratch);
    lines = array(5 * ends, sizeof *lines);
    n = parse_shingles(text, length, values, scratch, lines);
    free(scratch);
    offsets = array(n, sizeof *offsets);
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = total += lines[5 * i + 4];
}

static void print_pair(int64_t a, int64_t b, int64_t common, int64_t all)
{
    const int64_t *x = lines + 5 * a, *y = lines + 5 * b;
    int64_t both = x[2] - x[1] < y[2] - y[1] ? x[2] - x[1] : y[2] - y[1];
    int order = memcmp(text + x[1], text + y[1], both);
    if (order > 0 || (order == 0 && x[2] - x[1] > y[2] - y[1])) /* the smaller id first */
        x = lines + 5 * b, y = lines + 5 * a;
    printf("%.*s\t%.*s\t%.6f\n", (int)(x[2] - x[1]), text + x[1], (int)(y[2] - y[1]), text + y[1],
           (double)common / (double)all);
}

static int64_t size_of(int64_t i) { return offsets[i + 1] - offsets[i]; }

static void by_keys(void)
{
    uint32_t factors[FACTORS] = {0}, minima[FACTORS];
    uint64_t bands[BANDS], *keys = array(n * BANDS, sizeof *keys), *words = array(n, sizeof *words);
    uint64_t *spare = array(n, sizeof *spare), row = (1 << 24) - 1;
    for (int k = 0; k < FACTORS; k++)
        factors[k] = (uint32_t)mix((uint64_t)k + 1) | 1;
    for (uint64_t b = 0; b < BANDS; b++)
        bands[b] = b;
    band_words(values, offsets, n, 1, factors, FACTORS, bands, BANDS, ROWS, minima, keys);
    for (int b = 0; b < BANDS; b++) {
        for (int64_t i = 0; i < n; i++)
            words[i] = (keys[i * BANDS + b] & ~row) | (uint64_t)i;
        by_counting(words, n, spare, ~row); /* by the hashes alone */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n && (words[i] & ~row) == (words[j] & ~row); j++) {
                int64_t p = (int64_t)(words[i] & row), q = (int64_t)(words[j] & row), common, band = 0;
                while (band < b && ((keys[p * BANDS + band] ^ keys[q * BANDS + band]) & ~row))
                    band++;
                int64_t x = size_of(p), y = size_of(q), less = x < y ? x : y;
                if (band < b || less * den < (x + y - less) * num)
                    continue; /* found before, or of too different sizes */
                shared_sizes(values, offsets, &p, &q, 1, &common);
                if (common * den >= (x + y - common) * num)
                    print_pair(p, q, common, x + y - common);
            }
    }
}

/* Number the values of a hash table, the rarest first; return how many there are.

   table (mask + 1): a value and one more than its number, at first zeros; ranks (total): results. */
static int64_t ranked(uint64_t (*table)[2], uint64_t mask, uint32_t *ranks, int64_t total)
{
    int64_t distinct = 0;
    uint64_t *held = array(total, sizeof *held), *spare;
    for (int64_t k = 0; k < total; k++) {
        uint64_t at = mix(values[k]) & mask;
        while (table[at][1] && table[at][0] != values[k])
            at = (at + 1) & mask;
        if (!table[at][1])
            table[at][0] = values[k], table[at][1] = (uint64_t)++distinct;
        ranks[k] = (uint32_t)table[at][1] - 1;
        held[ranks[k]]++;
    }
    for (int64_t k = 0; k < distinct; k++)
        held[k] = held[k] << 32 | (uint64_t)k;
    by_counting(held, distinct, spare = array(distinct, sizeof *spare), ABOVE);
    for (int64_t k = 0; k < distinct; k++)
        spare[(uint32_t)held[k]] = (uint64_t)k;
    for (int64_t k = 0; k < total; k++)
        ranks[k] = (uint32_t)spare[ranks[k]];
    free(held);
    free(spare);
    return distinct;
}

static void by_prefixes(void)
{
    int64_t total = offsets[n], at = 0, counts[3] = {0}, room = n > 1 << 20 ? n : 1 << 20, done = 0;
    uint64_t slots = 2;
    while (slots < 2 * (uint64_t)total)
        slots *= 2;
    uint32_t *number = array(total, sizeof *number), *ranks = array(total, sizeof *ranks);
    int64_t distinct = ranked(array((int64_t)slots, 2 * sizeof *values), slots - 1, number, total);
    uint64_t *spare = array(n, sizeof *spare), *more = array(n, sizeof *more);
    for (int64_t i = 0; i < n; i++) /* sets in order of size, each in order of ranks */
        spare[i] = (uint64_t)size_of(i) << 32 | (uint64_t)i;
    by_counting(spare, n, more, ABOVE);
    int64_t *ends = array(n, sizeof *ends), *probing = array(n, sizeof *probing);
    int64_t *indexing = array(n, sizeof *indexing), *first = array(n, sizeof *first);
    uint64_t *maps = array(4 * n, sizeof *maps), *row = array(total, sizeof *row);
    uint64_t *scratch = array(total, sizeof *scratch);
    for (int64_t s = 0; s < n; s++) {
        int64_t i = (int64_t)(uint32_t)spare[s], size = size_of(i);
        for (int64_t k = 0; k < size; k++) {
            uint64_t bit = values[offsets[i] + k] * 0x9E3779B97F4A7C15u >> 56;
            row[k] = number[offsets[i] + k];
            maps[4 * s + (int64_t)(bit >> 6)] ^= (uint64_t)1 << (bit & 63);
        }
        sort_distinct(row, size, scratch);
        for (int64_t k = 0; k < size; k++)
            ranks[done + k] = (uint32_t)row[k];
        ends[s + 1] = done += size;
        int64_t least = (size * num + den - 1) / den, need = needed(num, den, 0, size, size);
        probing[s] = size - least + 1, indexing[s] = size - need + 1;
        for (first[s] = s ? first[s - 1] : 0; ends[first[s] + 1] - ends[first[s]] < least; first[s]++)
            ;
    }
    int64_t *low = array(distinct, sizeof *low), *high = array(distinct, sizeof *high);
    for (int64_t s = 0; s < n; s++)
        for (int64_t k = 0; k < indexing[s]; k++)
            low[ranks[ends[s] + k] + 1]++;
    for (int64_t k = 0; k < distinct; k++)
        low[k + 1] += low[k];
    memcpy(high, low, (size_t)distinct * sizeof *low);
    uint32_t *postings = array(3 * low[distinct], sizeof *postings), *touched = array(n, sizeof *touched);
    int32_t *shared = array(n, sizeof *shared);
    int64_t *pairs = array(3 * room, sizeof *pairs);
    while (at < n) {
        int64_t found = prefix_pairs(ranks, ends, n, probing, indexing, first, maps, num, den, 0, low, high,
                                     postings, shared, touched, &at, counts, pairs, room);
        for (const int64_t *pair = pairs; pair < pairs + 3 * found; pair += 3) {
            int64_t a = (int64_t)(uint32_t)spare[pair[0]], b = (int64_t)(uint32_t)spare[pair[1]];
            print_pair(a, b, pair[2], size_of(a) + size_of(b) - pair[2]);
        }
    }
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    num = atoll(words[3]), den = atoll(words[4]);
    read_file(words[2]);
    if (words[1][0] == 'm')
        by_keys();
    else
        by_prefixes();
    return 0;
}
