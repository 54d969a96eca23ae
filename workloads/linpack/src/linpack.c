/*
 * Solves dense systems of linear equations by LU factorisation with partial
 * pivoting (LAPACK dgesv, here OpenBLAS), and prints the rate in GFLOPS.
 *
 * Operations are counted as 2/3 n^3 + 2 n^2 (Dongarra, Luszczek, Petitet: The
 * LINPACK benchmark: past, present and future, 2003); a solution counts when its
 * scaled residual  ||Ax - b|| / (eps (||A|| ||x|| + ||b||) n)  in the infinity
 * norm is below 16, HPL's threshold.  Every size is solved at least MIN-TRIALS
 * times and for at least MIN-SECONDS.  Before that the whole matrix is written
 * once, which touches all memory for the first time and has a rate of its own,
 * and a part of it is solved, which starts the library's threads.
 *
 * Usage:  linpack --threads N --sizes N[,N...] --min-trials N --min-seconds S --seed N
 * Output: one JSON object a line; the last one is {"done": true}.
 */
#define _GNU_SOURCE
#include <cblas.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "strata.h"

#define RESIDUAL_LIMIT 16.0
/* The largest order of the part that is solved first: a tenth of a second at 50 GFLOPS. */
#define WARMUP_ORDER 2048

/* LAPACK's driver, as Fortran compilers name it. */
extern void dgesv_(const int *n, const int *columns_of_b, double *a, const int *lda, int *pivot,
                   double *b, const int *ldb, int *info);

/* Returns a number in [-0.5, 0.5) for an index, by SplitMix64's mixing (Steele et al., 2014).  The
 * same seed and index always have the same number: scale_residual() relies on it. */
static double random_at(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53 - 0.5;
}

/* Writes the random matrix A of order N, column by column, and the right-hand side B, of a seed. */
static void fill_system(double *a, double *b, long n, uint64_t seed)
{
#pragma omp parallel for schedule(static)
    for (long column = 0; column < n; column++)
        for (long row = 0; row < n; row++)
            a[column * n + row] = random_at(seed, (uint64_t)(column * n + row));
    for (long row = 0; row < n; row++)
        b[row] = random_at(seed, (uint64_t)(n * n + row));
}

/* Returns the scaled residual of the solution X.  The system of order N is drawn again as in
 * fill_system(), since dgesv overwrote it. */
static double scale_residual(const double *x, long n, uint64_t seed)
{
    double norm_a = 0, norm_x = 0, norm_b = 0, norm_r = 0;
#pragma omp parallel for schedule(static) reduction(max : norm_a, norm_x, norm_b, norm_r)
    for (long row = 0; row < n; row++) {
        double b = random_at(seed, (uint64_t)(n * n + row));
        double sum = -b, absolute = 0;
        for (long column = 0; column < n; column++) {
            double entry = random_at(seed, (uint64_t)(column * n + row));
            sum += entry * x[column];
            absolute += fabs(entry);
        }
        norm_a = fmax(norm_a, absolute);
        norm_x = fmax(norm_x, fabs(x[row]));
        norm_b = fmax(norm_b, fabs(b));
        norm_r = fmax(norm_r, isfinite(sum) ? fabs(sum) : DBL_MAX);
    }
    return norm_r / (DBL_EPSILON * (norm_a * norm_x + norm_b) * (double)n);
}

/* Solves a system of order N in place: A becomes its factors, B the solution, and PIVOT the
 * exchanged rows.  Ends the program if there is no solution. */
static void solve_system(double *a, double *b, int *pivot, long n)
{
    int order = (int)n, one = 1, info = 0;
    dgesv_(&order, &one, a, &order, pivot, b, &order, &info);
    if (info != 0) {
        fprintf(stderr, "dgesv reports info = %d at n = %ld\n", info, n);
        exit(1);
    }
}

/* Measures matrices of order N, prints the results, and returns whether every residual passed.
 * parse.py reads the keys: "trial" is one trial, and "trials" the result of all. */
static int measure_size(long n, long min_trials, double min_seconds, uint64_t seed)
{
    double operations = 2.0 / 3.0 * (double)n * (double)n * (double)n + 2.0 * (double)n * (double)n;
    double *a = allocate_huge((size_t)n * (size_t)n * sizeof *a);
    double *b = allocate_huge((size_t)n * sizeof *b);
    int *pivot = allocate_huge((size_t)n * sizeof *pivot);
    double total = 0, worst = 0;
    long trial = 0;

    double begun = read_epoch_clock();
    fill_system(a, b, n, seed);
    double ended = read_epoch_clock(), first = ended - begun;
    printf("{\"first\": %ld, \"gb_per_second\": %.6g, \"seconds\": %.9g, \"ended\": %lld}\n", n,
           1e-9 * (double)n * (double)n * sizeof *a / first, first, to_microseconds(ended));
    solve_system(a, b, pivot, n < WARMUP_ORDER ? n : WARMUP_ORDER);
    while (trial < min_trials || total < min_seconds) {
        uint64_t trial_seed = seed + (uint64_t)++trial;
        fill_system(a, b, n, trial_seed);
        begun = read_epoch_clock();
        solve_system(a, b, pivot, n);
        ended = read_epoch_clock();
        double seconds = ended - begun;
        double residual = scale_residual(b, n, trial_seed);
        total += seconds;
        worst = fmax(worst, residual);
        printf("{\"n\": %ld, \"trial\": %ld, \"gflops\": %.6g, \"seconds\": %.9g, \"ended\": %lld, "
               "\"residual\": %.4g}\n",
               n, trial, 1e-9 * operations / seconds, seconds, to_microseconds(ended), residual);
    }
    int passed = worst < RESIDUAL_LIMIT;
    printf("{\"n\": %ld, \"trials\": %ld, \"gflops_of_all\": %.6g, \"seconds\": %.9g, "
           "\"verified\": %s, \"worst_residual\": %.4g, \"limit\": %g, "
           "\"huge_page_bytes\": %lld}\n",
           n, trial, 1e-9 * operations * (double)trial / total, total, format_bool(passed), worst,
           RESIDUAL_LIMIT, count_huge_page_bytes());
    fflush(stdout);
    free(a);
    free(b);
    free(pivot);
    return passed;
}

/* Measures all sizes, and prints the log; the status is 1 if a solution is wrong, and then the log
 * lacks its last line, so that parse.py refuses it. */
int main(int argc, char **argv)
{
    long threads = get_integer(argc, argv, "--threads", 1, 4096);
    long min_trials = get_integer(argc, argv, "--min-trials", 1, 1000000);
    double min_seconds = get_number(argc, argv, "--min-seconds", 0, 86400);
    long seed = get_integer(argc, argv, "--seed", 0, 1L << 53);
    char *sizes = strdup(get_option(argc, argv, "--sizes"));
    int passed = 1;

    openblas_set_num_threads((int)threads);
    printf("{\"tool\": \"strata-linpack\", \"threads\": %d, \"blas\": \"%s\", \"core\": \"%s\"}\n",
           openblas_get_num_threads(), openblas_get_config(), openblas_get_corename());
    for (char *size = strtok(sizes, ","); size; size = strtok(NULL, ","))
        passed &= measure_size((long)parse_number("--sizes", size, 10, 200000), min_trials,
                               min_seconds, (uint64_t)seed);
    free(sizes);
    if (passed)
        puts("{\"done\": true}");
    return passed ? 0 : 1;
}
