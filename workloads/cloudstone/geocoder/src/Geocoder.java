import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.zip.CRC32;

/**
 * Takes the place of a geocoding service: the coordinates of an address follow from a checksum of
 * its text.
 * GET /geocode?address=TEXT answers with one line, "LATITUDE LONGITUDE", in degrees.
 */
public class Geocoder extends HttpServlet {
    private static final long serialVersionUID = 1;

    /**
     * Answers with the coordinates, or with the status 400 if there is no address.
     * data_set.py has the same formula for the addresses of the data set.
     */
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        String address = request.getParameter("address");
        if (address == null || address.isBlank()) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST, "no address");
            return;
        }
        CRC32 sum = new CRC32();
        sum.update(address.getBytes(StandardCharsets.UTF_8));
        // Between 60 degrees south and north, where people live, in millionths of a degree.
        double latitude = sum.getValue() % 120_000_001L / 1e6 - 60;
        double longitude = sum.getValue() / 7 % 360_000_001L / 1e6 - 180;
        response.setContentType("text/plain;charset=UTF-8");
        response.getWriter().printf(Locale.ROOT, "%.6f %.6f%n", latitude, longitude);
    }
}
