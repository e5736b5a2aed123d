/* Every pair of a file of sets, counted without a filter: what a join that claims every pair must print.

       cc -O3 -march=native -o nested_loop bench/nested_loop.c
       ./nested_loop count FILE                  a line for each measure and threshold
       ./nested_loop check FILE MEASURE T < PAIRS

   A line of FILE is `ID TOKEN TOKEN …`.  All tokens that two records share are counted: the 512 most
   frequent ones as bits, the others by lists of the records that have them; no pair is left out by
   sizes, prefixes or a bound.  It shares no code with the package.

   `count` prints `MEASURE T PAIRS SUM PAIRS SUM`: of all pairs, then of those with an odd line,
   as with the even ones in --against.  SUM adds a hash of each pair, so it depends on which pairs
   they are and not on their order.  `check` prints `PAIRS SUM WRONG` of printed pairs: WRONG counts
   lines below T or with another similarity than the sets have. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, FREQUENT = 64 * WORDS, MEASURES = 5, THRESHOLDS = 10, FIRST = 50, STEP = 5 };
static const char *names[MEASURES] = {"jaccard", "dice", "cosine", "overlap", "containment"};

typedef struct {
    char *text;
    uint32_t number;
} Token;

static char **ids;
static uint32_t **sets, *sizes, n;
static uint64_t (*bits)[WORDS];
static uint32_t tokens;

static void *array(size_t count, size_t width)
{
    void *made = calloc(count + 1, width);
    if (!made)
        exit(3);
    return made;
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const Token *)a)->text, ((const Token *)b)->text);
}

static int by_number(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

static uint32_t *frequency, *order; /* of a token's first number; its first number by rank */

static int by_frequency(const void *a, const void *b)
{
    uint32_t x = frequency[*(const uint32_t *)a], y = frequency[*(const uint32_t *)b];
    return (x < y) - (x > y);
}

/* Read FILE; tokens are numbered from the most frequent one. */
static void read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        exit(3);
    size_t length = (size_t)ftell(file), all = 0;
    rewind(file);
    char *text = array(length, 1);
    if (fread(text, 1, length, file) != length)
        exit(3);
    for (size_t i = 0; i < length; i++) {
        n += text[i] == '\n';
        all += text[i] == ' ' || text[i] == '\t';
    }
    ids = array(n, sizeof *ids);
    sets = array(n, sizeof *sets);
    sizes = array(n, sizeof *sizes);
    uint32_t *owner = array(all, sizeof *owner);
    Token *list = array(all, sizeof *list);
    all = 0;
    char *line = text;
    for (uint32_t i = 0; i < n; i++) {
        char *end = strchr(line, '\n');
        *end = 0;
        ids[i] = line;
        char *blank = strpbrk(line, " \t");
        if (blank) {
            *blank = 0;
            for (char *word = strtok(blank + 1, " \t"); word; word = strtok(NULL, " \t")) {
                owner[all] = i;
                list[all].text = word;
                list[all].number = (uint32_t)all;
                all++;
            }
        }
        line = end + 1;
    }
    qsort(list, all, sizeof *list, by_text);
    uint32_t *token = array(all, sizeof *token);
    for (size_t k = 0; k < all; k++) {
        tokens += k && strcmp(list[k].text, list[k - 1].text) != 0;
        token[list[k].number] = tokens;
    }
    tokens++;
    for (size_t k = 0, from; k < all; k = from) {
        for (from = k; from < all && owner[from] == owner[k]; from++)
            ;
        uint32_t *set = sets[owner[k]] = token + k, size = 0;
        qsort(set, from - k, sizeof *set, by_number);
        for (size_t j = 0; j < from - k; j++)
            if (!j || set[j] != set[size - 1])
                set[size++] = set[j];
        sizes[owner[k]] = size;
    }
    frequency = array(tokens, sizeof *frequency);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < sizes[i]; j++)
            frequency[sets[i][j]]++;
    uint32_t *rank = array(tokens, sizeof *rank);
    order = array(tokens, sizeof *order);
    for (uint32_t k = 0; k < tokens; k++)
        order[k] = k;
    qsort(order, tokens, sizeof *order, by_frequency);
    for (uint32_t k = 0; k < tokens; k++)
        rank[order[k]] = k;
    bits = array(n, sizeof *bits);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < sizes[i]; j++)
            sets[i][j] = rank[sets[i][j]];
        qsort(sets[i], sizes[i], sizeof *sets[i], by_number);
        for (uint32_t j = 0; j < sizes[i] && sets[i][j] < FREQUENT; j++)
            bits[i][sets[i][j] / 64] |= (uint64_t)1 << sets[i][j] % 64;
    }
}

/* Whether `common` of the sizes a and b is at least t hundredths. */
static int reached(int measure, uint64_t common, uint64_t a, uint64_t b, uint64_t t)
{
    switch (measure) {
    case 0:
        return 100 * common >= t * (a + b - common);
    case 1:
        return 200 * common >= t * (a + b);
    case 2:
        return 10000 * common * common >= t * t * a * b;
    case 3:
        return 100 * common >= t * (a < b ? a : b);
    default:
        return 100 * common >= t * a;
    }
}

static double similarity(int measure, double common, double a, double b)
{
    double wholes[] = {a + b - common, (a + b) / 2, sqrt(a * b), a < b ? a : b, a};
    return common / wholes[measure];
}

static uint64_t of_pair(uint64_t a, uint64_t b, int measure)
{
    int turned = measure < 4 && a > b;
    return mixed(turned ? b << 32 | a : a << 32 | b);
}

static void count(void)
{
    static uint64_t pairs[2][MEASURES][THRESHOLDS], sum[2][MEASURES][THRESHOLDS];
    uint32_t **postings = array(tokens, sizeof *postings), *used = array(tokens, sizeof *used);
    uint32_t *common = array(n, sizeof *common);
    for (uint32_t i = 0; i < n; i++) {
        memset(common, 0, i * sizeof *common);
        for (uint32_t j = 0; j < sizes[i]; j++) {
            uint32_t token = sets[i][j];
            if (token < FREQUENT)
                continue;
            if (!postings[token])
                postings[token] = array(frequency[order[token]], sizeof **postings);
            for (uint32_t k = 0; k < used[token]; k++)
                common[postings[token][k]]++;
            postings[token][used[token]++] = i;
        }
        for (uint32_t j = 0; j < i; j++) {
            uint32_t both = common[j];
            for (int w = 0; w < WORDS; w++)
                both += (uint32_t)__builtin_popcountll(bits[i][w] & bits[j][w]);
            uint32_t a = sizes[j], b = sizes[i];
            if (!both || 100 * (uint64_t)both < FIRST * (uint64_t)(a < b ? a : b))
                continue; /* no measure reaches the lowest threshold where the overlap coefficient does not */
            for (int measure = 0; measure < MEASURES; measure++)
                for (int t = 0; t < THRESHOLDS; t++)
                    for (int turned = 0; turned <= (measure == 4); turned++) {
                        if (!reached(measure, both, turned ? b : a, turned ? a : b, FIRST + STEP * t))
                            continue;
                        uint64_t hash = turned ? of_pair(i, j, measure) : of_pair(j, i, measure);
                        for (uint32_t two = 0; two <= ((i | j) & 1); two++) {
                            pairs[two][measure][t]++;
                            sum[two][measure][t] += hash;
                        }
                    }
        }
    }
    for (int measure = 0; measure < MEASURES; measure++)
        for (int t = 0; t < THRESHOLDS; t++) {
            printf("%s 0.%02d", names[measure], FIRST + STEP * t);
            for (int two = 0; two < 2; two++)
                printf(" %llu %016llx", (unsigned long long)pairs[two][measure][t],
                       (unsigned long long)sum[two][measure][t]);
            puts("");
        }
}

static uint32_t *slots, mask;

static uint32_t *slot_of(const char *id)
{
    uint64_t hash = 0;
    for (const char *c = id; *c; c++)
        hash = mixed(hash + (unsigned char)*c);
    uint32_t at = (uint32_t)hash & mask;
    while (slots[at] && strcmp(ids[slots[at] - 1], id))
        at = (at + 1) & mask;
    return slots + at;
}

static uint64_t shared(uint32_t a, uint32_t b)
{
    uint64_t both = 0;
    for (uint32_t i = 0, j = 0; i < sizes[a] && j < sizes[b];) {
        uint32_t x = sets[a][i], y = sets[b][j];
        both += x == y;
        i += x <= y;
        j += y <= x;
    }
    return both;
}

static void check(const char *name, double threshold)
{
    int measure = 0;
    while (measure < MEASURES && strcmp(names[measure], name))
        measure++;
    if (measure == MEASURES)
        exit(2);
    for (mask = 1; mask < 2 * n; mask = 2 * mask + 1)
        ;
    slots = array(mask, sizeof *slots);
    for (uint32_t i = 0; i < n; i++)
        *slot_of(ids[i]) = i + 1;
    uint64_t lines = 0, sum = 0, wrong = 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *second = strchr(line, '\t'), *third = second ? strchr(second + 1, '\t') : NULL;
        if (!third)
            exit(2);
        *second++ = *third++ = 0;
        int turned = strstr(third, "\tcontains") != NULL; /* A TAB B TAB SIMILARITY TAB old TAB contains */
        uint32_t a = *slot_of(turned ? second : line), b = *slot_of(turned ? line : second);
        lines++;
        if (!a || !b || a == b) {
            wrong++;
            continue;
        }
        a--, b--;
        uint64_t both = shared(a, b);
        wrong += !reached(measure, both, sizes[a], sizes[b], (uint64_t)llround(100 * threshold)) ||
                 fabs(similarity(measure, (double)both, sizes[a], sizes[b]) - atof(third)) > 1.01e-6;
        sum += of_pair(a, b, measure);
    }
    printf("%llu %016llx %llu\n", (unsigned long long)lines, (unsigned long long)sum, (unsigned long long)wrong);
}

int main(int arguments, char **argument)
{
    if (arguments < 3)
        return 2;
    read_file(argument[2]);
    if (!strcmp(argument[1], "count"))
        count();
    else if (arguments > 4)
        check(argument[3], atof(argument[4]));
    else
        return 2;
    return 0;
}
