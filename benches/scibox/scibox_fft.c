/* Both frames of an image as spectra: the mean of the two and their difference, each transformed over y and x.
 * Of the power of each frequency (those of x that are not negative) its logarithm comes out as a byte. */
const int N = 512;
const int H = 257;
double re[N][N], im[N][N];
double c[N / 2], s[N / 2];
unsigned char output[];

/* Transform each row: Cooley and Tukey, from bits in reverse. */
void rows() {
    for (int y = 0; y < N; y++) {
        int j = 0;
        for (int i = 1; i < N; i++) {
            int bit = N >> 1;
            while (j & bit) { j ^= bit; bit >>= 1; }
            j |= bit;
            if (i < j) {
                double a = re[y][i], b = im[y][i];
                re[y][i] = re[y][j]; im[y][i] = im[y][j];
                re[y][j] = a; im[y][j] = b;
            }
        }
        for (int half = 1; half < N; half *= 2) {
            int stride = N / 2 / half;
            for (int from = 0; from < N; from += 2 * half) {
                for (int k = 0; k < half; k++) {
                    int p = from + k, q = p + half;
                    double wr = c[k * stride], wi = s[k * stride];
                    double a = re[y][q] * wr - im[y][q] * wi, b = re[y][q] * wi + im[y][q] * wr;
                    re[y][q] = re[y][p] - a; im[y][q] = im[y][p] - b;
                    re[y][p] += a; im[y][p] += b;
                }
            }
        }
    }
}

void transpose() {
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < y; x++) {
            double a = re[y][x], b = im[y][x];
            re[y][x] = re[x][y]; im[y][x] = im[x][y];
            re[x][y] = a; im[x][y] = b;
        }
    }
}

unsigned char level(double a, double b) { return (unsigned char)(4 * log2(1 + a * a + b * b)); }

void proc() {
    for (int k = 0; k < N / 2; k++) { c[k] = cos(2 * M_PI * k / N); s[k] = -sin(2 * M_PI * k / N); }
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) {
            double first = input.vals[y * N + x], second = input.vals[N * N + y * N + x];
            /* Two real images are one complex one. */
            re[y][x] = (first + second) / 2;
            im[y][x] = first - second;
        }
    }
    rows();
    transpose();
    rows();
    resize(2 * H * N);
    for (int x = 0; x < H; x++) {
        for (int y = 0; y < N; y++) {
            int u = (N - x) % N, v = (N - y) % N;
            double a = re[x][y], b = im[x][y], d = re[u][v], e = -im[u][v];
            output[x * N + y] = level((a + d) / 2, (b + e) / 2);
            output[(H + x) * N + y] = level((b - e) / 2, (d - a) / 2);
        }
    }
}
