import jakarta.jws.WebService;
import jakarta.xml.bind.JAXBContext;
import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.Endpoint;
import jakarta.xml.ws.Holder;
import jakarta.xml.ws.soap.SOAPFaultException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import javax.xml.transform.stream.StreamSource;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.tmforum.mtop.fmw.xsd.hdr.v1.CommunicationPatternType;
import org.tmforum.mtop.fmw.xsd.hdr.v1.CommunicationStyleType;
import org.tmforum.mtop.fmw.xsd.hdr.v1.Header;
import org.tmforum.mtop.fmw.xsd.hdr.v1.MessageTypeType;
import org.tmforum.mtop.fmw.xsd.msg.v1.BaseExceptionMessageType;
import org.tmforum.mtop.fmw.xsd.msg.v1.GetAllDataIteratorExceptionType;
import org.tmforum.mtop.fmw.xsd.msg.v1.GetAllDataIteratorRequestType;
import org.tmforum.mtop.mri.wsdl.mer.v1_0.GetManagedElementException;
import org.tmforum.mtop.mri.wsdl.mer.v1_0.GetManagedElementsIteratorException;
import org.tmforum.mtop.mri.wsdl.mer.v1_0.ManagedElementRetrievalHttp;
import org.tmforum.mtop.mri.wsdl.mer.v1_0.ManagedElementRetrievalRPC;
import org.tmforum.mtop.mri.xsd.mer.v1.GetAllManagedElementsPassingFilterRequest;
import org.tmforum.mtop.mri.xsd.mer.v1.GetAllManagedElementsRequest;
import org.tmforum.mtop.mri.xsd.mer.v1.GetAllManagedElementsWrtOsRequest;
import org.tmforum.mtop.mri.xsd.mer.v1.GetManagedElementRequest;
import org.tmforum.mtop.mri.xsd.mer.v1.MultipleMeObjectsResponseType;
import org.tmforum.mtop.mri.xsd.mer.v1.ObjectFactory;
import org.tmforum.mtop.mri.xsd.mer.v1.SingleMeObjectResponseType;
import org.tmforum.mtop.nrf.xsd.me.v1.ManagedElementListType;
import org.tmforum.mtop.nrf.xsd.me.v1.ManagedElementType;

/**
 * A client and a service of ManagedElementRetrieval over HTTP in Apache CXF, both with what `wsdl2java` makes of the
 * WSDL. It does what its standard input says, a command a line, words parted by tabulators, and answers with lines of
 * words and a line with a dot.
 */
public class CxfHttpPeer {
    static final String NAMESPACE = "http://www.tmforum.org/mtop/mri/wsdl/mer/v1-0";
    static final Semaphore MAY_GO = new Semaphore(0);
    static final long PATIENCE = 60;

    private final JAXBContext binding;

    CxfHttpPeer() throws Exception {
        binding = JAXBContext.newInstance(ObjectFactory.class, org.tmforum.mtop.nrf.xsd.me.v1.ObjectFactory.class);
    }

    public static void main(String[] arguments) throws Exception {
        CxfHttpPeer peer = new CxfHttpPeer();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(peer.carriedOut(line.split("\t", -1)) + "\n.");
        }
        System.exit(0);
    }

    private String carriedOut(String[] words) {
        try {
            switch (words[0]) {
                case "fetch": // WSDL, version of SOAP, batch size, folder for the responses; answers their number
                    return "fetched\t" + fetch(port(words[1], words[2]), Long.parseLong(words[3]), Path.of(words[4]));
                case "next": // WSDL, version of SOAP, iteratorReferenceURI
                    Header header = header("getManagedElementsIterator");
                    header.setIteratorReferenceURI(words[3]);
                    port(words[1], words[2]).getManagedElementsIterator(new Holder<>(header), new GetAllDataIteratorRequestType());
                    return "fetched";
                case "serve": // file of a response with all elements, number of the first response that waits
                    return "serves\t" + serve(Path.of(words[1]), Integer.parseInt(words[2]));
                case "go": // to what waits
                    MAY_GO.release(1_000_000);
                    return "goes";
                default:
                    return "error\tunknown command";
            }
        } catch (GetManagedElementsIteratorException fault) {
            GetAllDataIteratorExceptionType told = fault.getFaultInfo();
            BaseExceptionMessageType kind = told.getInvalidInput();
            return "fault\tGetManagedElementsIteratorException\t" + (kind == null ? "" : "invalidInput\t" + kind.getReason());
        } catch (SOAPFaultException fault) {
            return "fault\t" + fault.getFault().getFaultCodeAsQName() + "\t" + fault.getMessage();
        } catch (Exception error) {
            error.printStackTrace();
            return "error\t" + error.getClass().getSimpleName() + "\t" + String.valueOf(error.getMessage()).replaceAll("\\s", " ");
        }
    }

    /** The service as its WSDL tells, which has SOAP 1.1; in SOAP 1.2 at the same address. */
    private static ManagedElementRetrievalRPC port(String wsdl, String version) throws Exception {
        ManagedElementRetrievalHttp service = new ManagedElementRetrievalHttp(URI.create(wsdl).toURL());
        ManagedElementRetrievalRPC port = service.getManagedElementRetrievalSoapHttp();
        if (version.equals("1.1")) {
            return port;
        }
        Object address = ((BindingProvider) port).getRequestContext().get(BindingProvider.ENDPOINT_ADDRESS_PROPERTY);
        JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
        factory.setServiceClass(ManagedElementRetrievalRPC.class);
        factory.setAddress((String) address);
        factory.setBindingId("http://schemas.xmlsoap.org/wsdl/soap12/");
        return factory.create(ManagedElementRetrievalRPC.class);
    }

    private static Header header(String activity) {
        Header header = new Header();
        header.setActivityName(activity);
        header.setMsgName(activity + "Request");
        header.setMsgType(MessageTypeType.REQUEST);
        header.setSenderURI("/MTOSI/InventoryOS");
        header.setDestinationURI("/MTOSI/EmsOS");
        header.setCommunicationPattern(CommunicationPatternType.MULTIPLE_BATCH_RESPONSE);
        header.setCommunicationStyle(CommunicationStyleType.RPC);
        return header;
    }

    private int fetch(ManagedElementRetrievalRPC port, long size, Path folder) throws Exception {
        Header first = header("getAllManagedElements");
        first.setRequestedBatchSize(size);
        first.setCorrelationId("of-cxf");
        Holder<Header> holder = new Holder<>(first);
        MultipleMeObjectsResponseType response = port.getAllManagedElements(holder, new GetAllManagedElementsRequest());
        for (int number = 1; ; number++) {
            Header told = holder.value;
            boolean last = told.isBatchSequenceEndOfReply();
            if (told.getBatchSequenceNumber() != number || (told.getIteratorReferenceURI() == null) != last) {
                throw new IllegalStateException("response " + number + " says it is " + told.getBatchSequenceNumber());
            }
            if (number == 1 && !"of-cxf".equals(told.getCorrelationId())) {
                throw new IllegalStateException("correlationId is " + told.getCorrelationId());
            }
            binding.createMarshaller().marshal(new ObjectFactory().createGetAllManagedElementsResponse(response), folder.resolve(number + ".xml").toFile());
            if (last) {
                return number;
            }
            Header next = header("getManagedElementsIterator");
            next.setIteratorReferenceURI(told.getIteratorReferenceURI());
            holder = new Holder<>(next);
            response = port.getManagedElementsIterator(holder, new GetAllDataIteratorRequestType());
        }
    }

    private String serve(Path file, int holds) throws Exception {
        MultipleMeObjectsResponseType all = binding.createUnmarshaller()
                .unmarshal(new StreamSource(file.toFile()), MultipleMeObjectsResponseType.class).getValue();
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        MAY_GO.drainPermits();
        String address = "http://127.0.0.1:" + port + "/ManagedElementRetrieval";
        Endpoint.publish(address, new Elements(all.getMeList().getMe(), address, holds));
        return address;
    }

    /** Gives elements out, through iterators. */
    @WebService(targetNamespace = NAMESPACE, serviceName = "ManagedElementRetrievalHttp", portName = "ManagedElementRetrievalSoapHttp",
            endpointInterface = "org.tmforum.mtop.mri.wsdl.mer.v1_0.ManagedElementRetrievalRPC")
    public static class Elements implements ManagedElementRetrievalRPC {
        /** How far an iterator has come. */
        record Place(int number, int from, int size) {}

        private final List<ManagedElementType> elements;
        private final String address;
        private final int holds;
        private final Map<String, Place> places = new ConcurrentHashMap<>();

        Elements(List<ManagedElementType> elements, String address, int holds) {
            this.elements = elements;
            this.address = address;
            this.holds = holds;
        }

        @Override
        public MultipleMeObjectsResponseType getAllManagedElements(Holder<Header> header, GetAllManagedElementsRequest request) {
            Long size = header.value.getRequestedBatchSize();
            return given(header, "getAllManagedElements", new Place(1, 0, size == null ? elements.size() : size.intValue()));
        }

        @Override
        public MultipleMeObjectsResponseType getManagedElementsIterator(Holder<Header> header, GetAllDataIteratorRequestType request)
                throws GetManagedElementsIteratorException {
            Place place = places.remove(String.valueOf(header.value.getIteratorReferenceURI()));
            if (place == null) {
                GetAllDataIteratorExceptionType told = new GetAllDataIteratorExceptionType();
                BaseExceptionMessageType kind = new BaseExceptionMessageType();
                kind.setReason("no such iterator");
                told.setInvalidInput(kind);
                throw new GetManagedElementsIteratorException("no such iterator", told);
            }
            return given(header, "getManagedElementsIterator", place);
        }

        private MultipleMeObjectsResponseType given(Holder<Header> holder, String activity, Place place) {
            Header asked = holder.value;
            if (asked.getCommunicationStyle() != CommunicationStyleType.RPC || asked.getReplyToURI() != null) {
                throw new IllegalArgumentException("no request in RPC style");
            }
            try {
                if (place.number >= holds && !MAY_GO.tryAcquire(PATIENCE, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("nobody said that it may go on");
                }
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
            int to = Math.min(place.from + place.size, elements.size());
            boolean last = to == elements.size();
            Header header = header(activity);
            header.setMsgName(activity + "Response");
            header.setMsgType(MessageTypeType.RESPONSE);
            header.setSenderURI(asked.getDestinationURI());
            header.setDestinationURI(asked.getSenderURI());
            header.setBatchSequenceNumber((long) place.number);
            header.setBatchSequenceEndOfReply(last);
            if (!last) {
                String uri = address + "/iterator/" + UUID.randomUUID() + "?a=1&b=2";
                places.put(uri, new Place(place.number + 1, to, place.size));
                header.setIteratorReferenceURI(uri);
            }
            holder.value = header;
            MultipleMeObjectsResponseType response = new MultipleMeObjectsResponseType();
            response.setMeList(new ManagedElementListType());
            response.getMeList().getMe().addAll(elements.subList(place.from, to));
            return response;
        }

        @Override
        public MultipleMeObjectsResponseType getAllManagedElementsWrtOs(Holder<Header> header, GetAllManagedElementsWrtOsRequest request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public MultipleMeObjectsResponseType getAllManagedElementsPassingFilter(Holder<Header> header, GetAllManagedElementsPassingFilterRequest request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public SingleMeObjectResponseType getManagedElement(Holder<Header> header, GetManagedElementRequest request) throws GetManagedElementException {
            throw new UnsupportedOperationException();
        }
    }
}
