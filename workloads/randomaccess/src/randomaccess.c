/*
 * Updates a table in memory at random, and prints giga-updates per second (GUPS).
 *
 * The rules are those of the HPC Challenge RandomAccess benchmark
 * (Luszczek et al., 2005): a table of 2^k 64-bit words, table[i] = i at first;
 * updates table[r mod 2^k] ^= r for a sequence r over GF(2) with the feedback
 * polynomial x^64 + x^2 + x + 1; at most 1 % of the words may be wrong in the
 * end, since threads may race for a word.  The code is written anew.
 *
 * The first pass over the written table has a rate of its own; PASSES more make the rate.
 * All passes make the same updates, so that two passes undo each other.  Therefore passes
 * are verified in groups of an odd number, at most nine, by one more pass without races;
 * the worst group has the printed share of wrong words.
 *
 * Usage:  randomaccess --threads N --log2 K --updates-per-word M --passes P
 * Output: one JSON object a line; the last one is {"done": true}.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "strata.h"

/* The most passes that are verified together. */
#define GROUP 9
/* x^2 + x + 1: the feedback without its highest power, as bits. */
#define POLYNOMIAL 7u
/* The steps after which the sequence repeats, as in the benchmark's rules. */
#define PERIOD INT64_C(1317624576693539401)

/* Returns the state of the sequence after one step from state R. */
static inline uint64_t step(uint64_t r)
{
    return (r << 1) ^ ((int64_t)r < 0 ? POLYNOMIAL : 0u);
}

/*
 * Returns the state after STEPS steps from 1, by square-and-multiply with the
 * step's matrix over GF(2), whose columns are 64-bit words.
 */
static uint64_t compute_state(int64_t steps)
{
    uint64_t column[64], state = 1;
    for (int bit = 0; bit < 64; bit++)
        column[bit] = step(UINT64_C(1) << bit);
    for (steps %= PERIOD; steps > 0; steps >>= 1) {
        if (steps & 1) {
            uint64_t image = 0;
            for (int bit = 0; bit < 64; bit++)
                if (state >> bit & 1)
                    image ^= column[bit];
            state = image;
        }
        uint64_t square[64];
        for (int bit = 0; bit < 64; bit++) {
            square[bit] = 0;
            for (int k = 0; k < 64; k++)
                if (column[bit] >> k & 1)
                    square[bit] ^= column[k];
        }
        for (int bit = 0; bit < 64; bit++)
            column[bit] = square[bit];
    }
    return state;
}

/* Returns the number of the first update of one thread's share, from 0; UPDATES for THREADS. */
static int64_t get_share_start(int64_t updates, int thread, int threads)
{
    return updates / threads * thread + (updates % threads) * thread / threads;
}

/* Applies the updates of this thread's share; with ATOMIC no update of another thread is lost.
 * Every thread of a parallel region calls this.  MASK: the number of words, less 1. */
static void apply_share(uint64_t *table, uint64_t mask, int64_t updates, int atomic)
{
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    int64_t first = get_share_start(updates, thread, threads);
    int64_t last = get_share_start(updates, thread + 1, threads);
    uint64_t r = compute_state(first);
    if (atomic)
        for (int64_t i = first; i < last; i++) {
            r = step(r);
            __atomic_fetch_xor(&table[r & mask], r, __ATOMIC_RELAXED);
        }
    else
        for (int64_t i = first; i < last; i++) {
            r = step(r);
            table[r & mask] ^= r;
        }
}

/* Writes table[i] = i, by the threads that will use the word. */
static void reset_table(uint64_t *table, int64_t words)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < words; i++)
        table[i] = (uint64_t)i;
}

/* Applies all updates once, where threads may race for a word; prints the rate of pass number PASS,
 * of which 0 is the first, and returns its seconds.  parse.py reads the keys. */
static double run_pass(uint64_t *table, int64_t words, int64_t updates, long pass)
{
    double begun = read_epoch_clock();
#pragma omp parallel
    apply_share(table, (uint64_t)words - 1, updates, 0);
    double ended = read_epoch_clock(), seconds = ended - begun;
    double gups = 1e-9 * (double)updates / seconds;
    if (pass == 0)
        printf("{\"first\": %.6g", gups);
    else
        printf("{\"pass\": %ld, \"gups\": %.6g", pass, gups);
    printf(", \"seconds\": %.9g, \"ended\": %lld}\n", seconds, to_microseconds(ended));
    return seconds;
}

/*
 * Returns the number of words that an odd number of passes left wrong, and corrects
 * them: one more pass, without races, must restore table[i] = i.
 */
static int64_t restore_words(uint64_t *table, int64_t words, int64_t updates)
{
    int64_t bad = 0;
#pragma omp parallel
    apply_share(table, (uint64_t)words - 1, updates, 1);
#pragma omp parallel for schedule(static) reduction(+ : bad)
    for (int64_t i = 0; i < words; i++)
        if (table[i] != (uint64_t)i) {
            table[i] = (uint64_t)i;
            bad++;
        }
    return bad;
}

/* Measures and verifies all passes, and prints the log; the status is 1 if the table is wrong, and
 * then the log lacks its last line, so that parse.py refuses it. */
int main(int argc, char **argv)
{
    long threads = get_integer(argc, argv, "--threads", 1, 4096);
    long log2 = get_integer(argc, argv, "--log2", 10, 44);
    double per_word = get_number(argc, argv, "--updates-per-word", 1e-3, 64);
    long passes = get_integer(argc, argv, "--passes", 1, 1000000);
    int64_t words = INT64_C(1) << log2, updates = (int64_t)((double)words * per_word);
    uint64_t *table = allocate_huge((size_t)words * sizeof *table);
    int team = 0;

    omp_set_dynamic(0);
    omp_set_num_threads((int)threads);
#pragma omp parallel
    {
#pragma omp single
        team = omp_get_num_threads();
    }
    reset_table(table, words);
    printf("{\"tool\": \"strata-randomaccess\", \"threads\": %d, \"table_bytes\": %lld, "
           "\"updates_per_pass\": %lld, \"huge_page_bytes\": %lld}\n",
           team, (long long)(words * 8), (long long)updates, count_huge_page_bytes());
    double total = 0;
    long group = 0; /* passes since the last verification */
    int64_t wrong = 0, worst = 0;
    for (long pass = 0; pass <= passes; pass++) {
        double seconds = run_pass(table, words, updates, pass);
        total += pass ? seconds : 0;
        group++;
        /* The last groups are smaller, so that none has an even number of passes. */
        if (group == GROUP || (group % 2 == 1 && passes - pass <= 1)) {
            int64_t bad = restore_words(table, words, updates);
            wrong += bad;
            worst = bad > worst ? bad : worst;
            group = 0;
        }
    }
    int passed = worst * 100 <= words;
    printf("{\"passes\": %ld, \"gups_of_all\": %.6g, \"seconds\": %.9g, \"verified\": %s, "
           "\"wrong_words\": %lld, \"wrong_share\": %.3g, \"limit\": 0.01}\n",
           passes, 1e-9 * (double)updates * (double)passes / total, total, format_bool(passed),
           (long long)wrong, (double)worst / (double)words);
    if (passed)
        puts("{\"done\": true}");
    return passed ? 0 : 1;
}
